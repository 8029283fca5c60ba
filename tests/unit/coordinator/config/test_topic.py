"""The settings of a topic over those of its broker; what is refused is what Apache Kafka 4.3.1 refuses."""

from __future__ import annotations

import dataclasses

import pytest

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.topic import TopicConfig, check_topic, usable_topic
from rota.coordinator.config.topic_properties import SYNONYMS, TOPIC
from rota.coordinator.log.contract import LogConfig


def log_config(overrides: dict[str, str | None], **properties: str) -> LogConfig:
    broker = BrokerConfig({name.replace("_", "."): value for name, value in properties.items()})
    return TopicConfig(overrides, broker).log_config()


def test_without_any_setting_the_log_has_its_own_defaults() -> None:
    assert log_config({}) == LogConfig()


@pytest.mark.parametrize(
    ("overrides", "field", "value"),
    [
        ({"segment.bytes": "1048576"}, "segment_bytes", 1_048_576),
        ({"segment.ms": "5"}, "segment_ms", 5),
        ({"index.interval.bytes": "9"}, "index_interval_bytes", 9),
        ({"retention.ms": "-1"}, "retention_ms", None),
        ({"retention.ms": " 5 "}, "retention_ms", 5),
        ({"retention.bytes": "10"}, "retention_bytes", 10),
        ({"retention.bytes": "-5"}, "retention_bytes", None),
        ({"cleanup.policy": "compact"}, "compact", True),
        ({"cleanup.policy": "compact"}, "delete", False),
        ({"cleanup.policy": "delete, compact"}, "compact", True),
        ({"cleanup.policy": ""}, "delete", False),
        ({"min.compaction.lag.ms": "3"}, "min_compaction_lag_ms", 3),
        ({"max.compaction.lag.ms": "3"}, "max_compaction_lag_ms", 3),
        ({}, "max_compaction_lag_ms", None),
        ({"min.cleanable.dirty.ratio": "0.1"}, "min_cleanable_dirty_ratio", 0.1),
        ({"delete.retention.ms": "3"}, "delete_retention_ms", 3),
        ({"flush.messages": "1"}, "flush_messages", 1),
        ({"max.message.bytes": "100"}, "message_bytes_max", 100),
        ({"message.timestamp.type": "LogAppendTime"}, "log_append_time", True),
    ],
)
def test_a_setting_reaches_the_log(overrides: dict[str, str | None], field: str, value: object) -> None:
    changed = dataclasses.asdict(log_config(overrides))
    assert changed[field] == value


def test_configs_that_a_topic_does_not_set_come_from_the_broker() -> None:
    config = log_config({"segment.ms": "7"}, log_roll_hours="1", log_retention_minutes="2", message_max_bytes="99")
    assert (config.segment_ms, config.retention_ms, config.message_bytes_max) == (7, 120_000, 99)


@pytest.mark.parametrize("name", TOPIC)
def test_bc7_spaces_around_a_value_do_not_change_what_is_in_force(name: str) -> None:
    """They are accepted, as in Kafka: a value that log_config() refuses would keep a broker from starting again."""
    default = TOPIC[name].default
    assert log_config({name: f" {default} "}) == log_config({name: default})


def test_bc7_spaces_around_a_value_of_the_broker_do_not_change_what_is_in_force() -> None:
    given = {"compression_type": "gzip", "log_message_timestamp_type": "LogAppendTime", "log_roll_hours": "2"}
    assert log_config({}, **{name: f" {text} " for name, text in given.items()}) == log_config({}, **given)


def test_the_rest_is_at_hand_too() -> None:
    topic = TopicConfig({"min.insync.replicas": "2", "compression.type": "lz4"}, BrokerConfig())
    assert (topic.min_insync_replicas, topic.compression_type) == (2, "lz4")
    assert (topic.timestamp_before_max_ms, topic.timestamp_after_max_ms) == (2**63 - 1, 3_600_000)


@pytest.mark.parametrize(
    ("name", "value", "error_text"),
    [
        ("retention.mss", "1", "nearest known name is retention.ms"),
        ("retention.ms", "abc", "not a whole number"),
        ("retention.ms", "-2", "from -1"),
        ("retention.ms", "", "not a whole number"),
        ("retention.ms", None, "Null value not supported"),
        ("cleanup.policy", "shred", "compact, delete"),
        ("segment.bytes", "10", "from 1048576"),
        ("compression.type", "GZIP", "gzip"),
        ("message.timestamp.type", "createtime", "CreateTime"),
        ("preallocate", "yes", "true or false"),
        ("min.cleanable.dirty.ratio", "2", "from 0 to 1"),
        ("compression.gzip.level", "0", "from 1 to 9, or -1"),
        ("max.message.bytes", "3000000000", "to 2147483647"),
        ("message.timestamp.after.max.ms", "9223372036854775808", "to 9223372036854775807"),
        ("segment.ms", "1e3", "not a whole number"),
        ("remote.storage.enable", "true", "not supported"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_valid_ones(name: str, value: str | None, error_text: str) -> None:
    with pytest.raises(ConfigRefused, match=error_text):
        check_topic({name: value})


@pytest.mark.parametrize(
    "overrides", [{"preallocate": "TRUE"}, {"retention.ms": "+5"}, {"cleanup.policy": "compact,compact"}]
)
def test_values_that_kafka_accepts_are_accepted(overrides: dict[str, str | None]) -> None:
    assert check_topic(overrides) == overrides


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigRefused, match=r"max\.compaction\.lag\.ms"):
        TopicConfig({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, BrokerConfig())


def test_every_synonym_belongs_to_a_topic_config() -> None:
    assert set(SYNONYMS) <= set(TOPIC)


def test_stored_configs_that_this_broker_cannot_use_do_not_count() -> None:
    """BC4. Another release, or another program, wrote them."""
    stored = {"retention.ms": "5", "of.a.later.release": "1", "segment.ms": "many", "min.insync.replicas": "0"}
    config, ignored = usable_topic(stored, BrokerConfig())
    assert config.overrides == {"retention.ms": "5"}
    assert [name for name in stored if any(name in reason for reason in ignored)] == [*stored][1:]


def test_stored_configs_that_fit_another_brokers_settings_only_do_not_count() -> None:
    """BC4."""
    stored, broker = {"retention.ms": "5", "min.compaction.lag.ms": "3"}, {"log.cleaner.max.compaction.lag.ms": "2"}
    config, ignored = usable_topic(stored, BrokerConfig(broker))
    assert (config.overrides, len(ignored)) == ({"retention.ms": "5"}, 1)
    assert usable_topic(stored, BrokerConfig())[0].overrides == stored
