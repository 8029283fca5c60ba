"""BC3, BC4: the dynamic configs in the image are in force in the broker's configuration."""

from __future__ import annotations

import pytest
import structlog

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.metadata.changes import DEFAULT_NAME, ConfigKind
from rota.coordinator.metadata.dynamic_broker_config import DynamicBrokerConfig
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.topic import Topic

BROKERS = ConfigKind.BROKERS


class Followed:
    """An image, and a configuration that follows it."""

    def __init__(self) -> None:
        self.image, self.config = Image(1), BrokerConfig({"node.id": "1", "log.retention.ms": "10"})
        self.changes = 0
        DynamicBrokerConfig(self.config, self.image).on_change(self._count)

    def _count(self) -> None:
        self.changes += 1


@pytest.fixture
def followed() -> Followed:
    return Followed()


def test_the_own_configs_are_above_the_defaults_of_all_brokers_and_these_above_the_static_ones(
    followed: Followed,
) -> None:
    image, config = followed.image, followed.config
    image.apply_configs(BROKERS, DEFAULT_NAME, {"log.retention.ms": "20"})
    assert config.log_retention_ms == config.retention_ms == 20
    image.apply_configs(BROKERS, "1", {"log.retention.ms": "30"})
    assert config.log_retention_ms == 30
    image.apply_configs(BROKERS, "1", {})
    assert config.log_retention_ms == 20
    image.apply_configs(BROKERS, DEFAULT_NAME, {})
    assert config.log_retention_ms == 10
    assert followed.changes == 4


def test_the_configs_of_another_broker_and_of_groups_change_nothing(followed: Followed) -> None:
    followed.image.apply_configs(BROKERS, "2", {"log.retention.ms": "20"})
    followed.image.apply_configs(ConfigKind.GROUPS, "1", {"log.retention.ms": "20"})
    assert (followed.config.log_retention_ms, followed.changes) == (10, 0)


def test_a_stored_value_that_cannot_be_used_is_ignored_with_one_warning(followed: Followed) -> None:
    stored = {"log.retention.ms": "soon", "num.partitions": "9", "nobody": "1", "log.segment.bytes": "2000000"}
    with structlog.testing.capture_logs() as lines:
        followed.image.apply_configs(BROKERS, "1", stored)
        followed.image.apply_configs(BROKERS, "1", {**stored, "message.max.bytes": "5"})
    config = followed.config
    assert (config.log_retention_ms, config.num_partitions) == (10, 1)
    assert (config.log_segment_bytes, config.message_max_bytes) == (2_000_000, 5)
    assert len([line for line in lines if line["log_level"] == "warning"]) == 3


def test_values_that_are_invalid_together_are_ignored(followed: Followed) -> None:
    lags = {"log.cleaner.min.compaction.lag.ms": "20", "log.cleaner.max.compaction.lag.ms": "10"}
    with structlog.testing.capture_logs() as lines:
        followed.image.apply_configs(BROKERS, "1", lags)
    assert (followed.config.log_cleaner_min_compaction_lag_ms, followed.changes) == (0, 0)
    assert lines[0]["log_level"] == "warning"


def test_bc8_stored_values_that_do_not_fit_are_ignored_and_no_others(followed: Followed) -> None:
    """Another broker has accepted them, on which they fit: with 0 connections no client could reach this one."""
    image, config, per_ip = followed.image, followed.config, "max.connections.per.ip"
    stored = {per_ip: "0", "group.consumer.assignment.interval.ms": "15001", "log.retention.ms": "20"}
    with structlog.testing.capture_logs() as lines:
        image.apply_configs(BROKERS, DEFAULT_NAME, stored)
    assert (config.max_connections_per_ip, config.log_retention_ms) == (2**31 - 1, 20)
    assert config.group_consumer_assignment_interval_ms == BrokerConfig().group_consumer_assignment_interval_ms
    assert len([line for line in lines if line["log_level"] == "warning"]) == 2
    image.apply_configs(BROKERS, "1", {f"{per_ip}.overrides": "127.0.0.1:9"})
    assert config.max_connections_per_ip == 0


def test_bc8_of_values_that_do_not_fit_those_of_this_broker_alone_are_ignored_first(followed: Followed) -> None:
    image, per_ip = followed.image, "max.connections.per.ip"
    image.apply_configs(BROKERS, DEFAULT_NAME, {per_ip: "7"})
    image.apply_configs(BROKERS, "1", {per_ip: "0", "log.retention.ms": "30"})
    assert (followed.config.max_connections_per_ip, followed.config.log_retention_ms) == (7, 30)


def test_a_property_without_effect_is_named_in_a_warning(followed: Followed) -> None:
    with structlog.testing.capture_logs() as lines:
        followed.image.apply_configs(BROKERS, DEFAULT_NAME, {"num.io.threads": "4"})
    assert [line["event"].split()[0] for line in lines if line["log_level"] == "warning"] == ["num.io.threads"]


def test_a_topic_that_is_invalid_already_does_not_block_the_configs_of_the_broker(followed: Followed) -> None:
    invalid = {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"}
    followed.image.apply_topic(Topic(name="t", topic_id=bytes(16), partitions=(), configs=invalid))
    followed.image.apply_configs(BROKERS, "1", {"log.retention.ms": "30"})
    assert followed.config.log_retention_ms == 30


def test_configs_that_would_make_a_topic_invalid_are_ignored(followed: Followed) -> None:
    followed.image.apply_topic(
        Topic(name="t", topic_id=bytes(16), partitions=(), configs={"min.compaction.lag.ms": "9"})
    )
    with structlog.testing.capture_logs() as lines:
        followed.image.apply_configs(BROKERS, "1", {"log.cleaner.max.compaction.lag.ms": "5"})
    assert followed.changes == 0
    assert "topic t would be invalid" in lines[0]["event"]
