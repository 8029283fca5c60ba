"""The values that depend on each other, with Apache Kafka's answers (seen on 4.3.1)."""

from __future__ import annotations

import pytest

from rota.coordinator.config import dependent_values
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.consumer_group.assignors import ASSIGNORS

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


@pytest.mark.parametrize(
    ("properties", "refused"),
    [
        ({"replica.fetch.wait.max.ms": "30001"}, "always be less than or equal to replica.lag.time.max.ms"),
        ({"replica.socket.timeout.ms": "499"}, "wait.max.ms should .* equal to replica.socket.timeout.ms"),
        ({"connections.max.idle.ms": "100"}, "delay.ms=100 should always be less than connections.max.idle.ms=100"),
        ({"connections.max.idle.ms": "0"}, "should always be less than connections.max.idle.ms=0"),
        ({"max.connections.per.ip": "0"}, "can be set to zero only if max.connections.per.ip.overrides"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited"),
        ({"log.retention.hours": "0"}, "log.retention.hours must be unlimited"),
        ({"log.retention.minutes": "0"}, "log.retention.minutes must be unlimited"),
        ({"log.roll.ms": "0"}, "log.roll.ms: the valid value is a whole number from 1"),
        ({"log.retention.minutes": "0", "log.retention.hours": "1"}, "log.retention.minutes must be unlimited"),
        ({"log.dirs": ""}, "log.dirs='' names no folder"),
        ({"log.dirs": "/a,,/b"}, "log.dirs='/a,,/b' names no folder, or has an empty name"),
        ({"log.dir": " "}, "log.dir=' ' names no folder"),
    ],
)
def test_bc8_what_keeps_a_kafka_from_starting_is_refused(properties: dict[str, str], refused: str) -> None:
    with pytest.raises(ConfigRefused, match=refused):
        BrokerConfig(properties)


def test_bc8_values_that_kafka_starts_with_are_accepted() -> None:
    BrokerConfig({"connections.max.idle.ms": "-1"})
    BrokerConfig({"connections.max.idle.ms": "101"})
    BrokerConfig({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:9"})
    BrokerConfig({"replica.fetch.wait.max.ms": "30000"})
    BrokerConfig({"log.retention.ms": "-1", "log.retention.minutes": "-1", "log.retention.hours": "-1"})
    BrokerConfig({"log.retention.ms": "60000", "log.retention.minutes": "0", "log.retention.hours": "0"})
    BrokerConfig({"log.retention.minutes": "1", "log.retention.hours": "0"})


def test_bc8_the_assignors_that_a_broker_accepts_are_those_that_there_are() -> None:
    """The configuration does not import the groups, so their names stand in both."""
    assert set(dependent_values.ASSIGNORS) == set(ASSIGNORS)
