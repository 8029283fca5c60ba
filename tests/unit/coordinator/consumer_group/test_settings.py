from __future__ import annotations

from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, Environment


def test_the_defaults_are_kafkas() -> None:
    settings = Environment().settings("any")
    assert settings == ConsumerGroupSettings()
    assert (settings.session_ms, settings.heartbeat_interval_ms, settings.assignment_interval_ms) == (
        45_000,
        5_000,
        1_000,
    )
    assert settings.assignors == ("uniform", "range")


def test_without_a_broker_there_are_no_topics() -> None:
    topics = Environment().topics
    assert (topics.get("t"), topics.by_id(bytes(16)), list(topics.names())) == (None, None, [])
