"""The settings of groups that bound each other, with Apache Kafka's answers (seen on 4.3.1)."""

from __future__ import annotations

import pytest

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused

_G = "group.consumer."


@pytest.mark.parametrize(
    ("properties", "refused"),
    [
        ({"session.timeout.ms": "44999"}, "session.timeout.ms must be greater than or equal to .*min.session"),
        ({"min.session.timeout.ms": "50000"}, "session.timeout.ms must be greater than or equal to .*min.session"),
        ({"session.timeout.ms": "60001"}, "session.timeout.ms must be less than or equal to .*max.session"),
        ({"max.session.timeout.ms": "1000"}, "max.session.timeout.ms must be greater than or equal to .*min.session"),
        ({"heartbeat.interval.ms": "4999"}, "heartbeat.interval.ms must be greater than or equal to .*min.heartbeat"),
        ({"max.heartbeat.interval.ms": "4000"}, "max.heartbeat.interval.ms must be greater than or equal to"),
        (
            {"heartbeat.interval.ms": "45000", "max.heartbeat.interval.ms": "45000"},
            "heartbeat.interval.ms must be less than group.consumer.session",
        ),
        ({"assignment.interval.ms": "20000"}, "assignment.interval.ms must be less than or equal to .*max.assignment"),
        ({"min.assignment.interval.ms": "1001"}, "assignment.interval.ms must be greater than or equal to .*min.as"),
    ],
)
def test_bc8_intervals_and_timeouts_stay_within_their_limits(properties: dict[str, str], refused: str) -> None:
    with pytest.raises(ConfigRefused, match=f"group.consumer.{refused}"):
        BrokerConfig({f"{_G}{name}": value for name, value in properties.items()})


def test_bc8_values_at_their_limits_are_accepted() -> None:
    config = BrokerConfig(
        {
            f"{_G}min.session.timeout.ms": "1000",
            f"{_G}session.timeout.ms": "1000",
            f"{_G}min.heartbeat.interval.ms": "999",
            f"{_G}heartbeat.interval.ms": "999",
            f"{_G}assignment.interval.ms": "15000",
        }
    )
    assert config.warnings == ()
    assert config.group_consumer_session_timeout_ms == 1_000


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("group.coordinator.rebalance.protocols", "consumer", "Disabling the 'classic' protocol is not supported"),
        ("group.coordinator.rebalance.protocols", "classic,foo", "Invalid value foo .*: expected consumer, classic"),
        ("group.coordinator.rebalance.protocols", "Classic", "Invalid value Classic"),
        ("group.coordinator.rebalance.protocols", "", "No value .*: expected consumer, classic"),
        ("group.consumer.assignors", "uniform,com.example.Nearest", "no assignor com.example.Nearest"),
        ("group.consumer.assignors", "", "names no assignor; expected some of uniform, range"),
    ],
)
def test_bc8_protocols_and_assignors_exist(name: str, value: str, refused: str) -> None:
    with pytest.raises(ConfigRefused, match=refused):
        BrokerConfig({name: value})


def test_bc8_the_assignors_of_kafka_may_have_the_names_of_their_classes() -> None:
    given = "org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform"
    assert BrokerConfig({"group.consumer.assignors": given}).warnings == ()
