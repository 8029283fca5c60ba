"""The settings of one topic: its own configs, over the defaults that the broker's settings give.

Source: KIP-226 (DescribeConfigs sources). The error code for an invalid name or value is INVALID_CONFIG.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from rota.coordinator.config import throttled_replicas
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import LONG_MAX, ConfigRefused, Support, Value, unknown_config
from rota.coordinator.config.topic_properties import SYNONYMS, TOPIC
from rota.coordinator.log.contract import LogConfig
from rota.protocol.records.batch import Codec

_COMPACTION_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")
_CODECS: dict[str, Codec | None] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def check_topic(overrides: Mapping[str, str | None]) -> dict[str, str]:
    """Return a topic's own configs if all of them are valid. Raises ConfigRefused."""
    checked: dict[str, str] = {}
    for name, text in overrides.items():
        definition = TOPIC.get(name)
        if definition is None:
            raise unknown_config(name, TOPIC, "topic")
        if text is None:
            raise ConfigRefused(name, f"Null value not supported for topic configs: {name}")
        value = definition.parse(text)
        if definition.support is Support.REFUSED and value != definition.parse(definition.default):
            raise ConfigRefused(name, f"Configuration {name} is not supported: {definition.doc}")
        if name in throttled_replicas.NAMES:
            throttled_replicas.check_throttled_replicas(name, text)
        checked[name] = text
    return checked


def usable_topic(stored: Mapping[str, str], broker: BrokerConfig) -> tuple[TopicConfig, list[str]]:
    """Return a topic's settings with those of its stored configs that this broker can use, and why it ignores others.

    Another release has other configs, and a combination that one broker accepts may be invalid on another (BC4).
    """
    try:
        return TopicConfig(stored, broker), []
    except ConfigRefused:
        return _without_unusable(stored, broker)


def _without_unusable(stored: Mapping[str, str], broker: BrokerConfig) -> tuple[TopicConfig, list[str]]:
    used, ignored = dict[str, str](), list[str]()
    for name, text in stored.items():
        try:
            used |= check_topic({name: text})
        except ConfigRefused as refused:
            ignored.append(str(refused))
    try:
        return TopicConfig(used, broker), ignored
    except ConfigRefused as refused:
        used = {name: text for name, text in used.items() if name not in _COMPACTION_LAGS}
        return TopicConfig(used, broker), [*ignored, str(refused)]


class TopicConfig:
    """One topic's settings over the broker's. Raises ConfigRefused when `overrides` or the combination is invalid."""

    def __init__(self, overrides: Mapping[str, str | None], broker: BrokerConfig) -> None:
        self.overrides = check_topic(overrides)
        self.broker = broker
        if self._long(_COMPACTION_LAGS[0]) > self._long(_COMPACTION_LAGS[1]):
            raise ConfigRefused(
                "min.compaction.lag.ms", "min.compaction.lag.ms must not be above max.compaction.lag.ms"
            )

    def text(self, name: str) -> str:
        """Return the effective value, as text."""
        own = self.overrides.get(name)
        if own is not None:
            return own
        for broker_name, factor in SYNONYMS.get(name, ()):
            given = self.broker.text(broker_name)
            if given is not None:
                return given if factor == 1 else _times(given, factor)
        default = TOPIC[name].default
        assert default is not None  # every topic config has one
        return default

    def value(self, name: str) -> Value:
        """Return the effective value, typed."""
        return TOPIC[name].parse(self.text(name))

    def _long(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int)
        return value

    @cached_property
    def min_insync_replicas(self) -> int:
        """Replicas that must have a record before acks=all is answered."""
        return self._long("min.insync.replicas")

    @cached_property
    def unclean_leader_election_enable(self) -> bool:
        """Whether a replica outside the ISR may lead if no other can."""
        return self.value("unclean.leader.election.enable") is True

    @cached_property
    def compression_type(self) -> str:
        """`producer` to keep the producer's codec, else the codec that batches are stored in."""
        return str(self.value("compression.type"))

    @cached_property
    def timestamp_before_max_ms(self) -> int:
        """How far a record's timestamp may lie behind the broker's clock."""
        return self._long("message.timestamp.before.max.ms")

    @cached_property
    def timestamp_after_max_ms(self) -> int:
        """How far a record's timestamp may lie ahead of the broker's clock."""
        return self._long("message.timestamp.after.max.ms")

    def _codec_level(self) -> int | None:
        """None is the codec's own default."""
        name = f"compression.{self.compression_type}.level"
        if name not in TOPIC:
            return None
        level = self._long(name)
        return None if level == -1 and self.compression_type == "gzip" else level

    def _finite(self, name: str) -> int | None:
        """Return None for the largest number, which is Kafka's "no limit" of this property."""
        return None if self._long(name) == LONG_MAX else self._long(name)

    def log_config(self) -> LogConfig:
        """Return the settings of the topic's logs."""
        policy, ratio = self.value("cleanup.policy"), self.value("min.cleanable.dirty.ratio")
        assert isinstance(policy, tuple)
        assert isinstance(ratio, float)
        return LogConfig(
            segment_bytes=self._long("segment.bytes"),
            segment_ms=self._long("segment.ms"),
            index_interval_bytes=self._long("index.interval.bytes"),
            retention_ms=_limit(self._long("retention.ms")),
            retention_bytes=_limit(self._long("retention.bytes")),
            compact="compact" in policy,
            delete="delete" in policy,
            min_compaction_lag_ms=self._long("min.compaction.lag.ms"),
            max_compaction_lag_ms=self._finite("max.compaction.lag.ms"),
            min_cleanable_dirty_ratio=ratio,
            delete_retention_ms=self._long("delete.retention.ms"),
            flush_messages=self._finite("flush.messages"),
            flush_ms=self._finite("flush.ms"),
            min_insync_replicas=self.min_insync_replicas,
            message_bytes_max=self._long("max.message.bytes"),
            log_append_time=self.value("message.timestamp.type") == "LogAppendTime",
            producer_id_expiration_ms=self.broker.producer_id_expiration_ms,
            timestamp_before_max_ms=None if self.timestamp_before_max_ms == LONG_MAX else self.timestamp_before_max_ms,
            timestamp_after_max_ms=self.timestamp_after_max_ms,
            codec=_CODECS[self.compression_type],
            codec_level=self._codec_level(),
        )


def _times(text: str, factor: int) -> str:
    return str(int(text) * factor if int(text) >= 0 else -1)


def _limit(value: int) -> int | None:
    """Return None, no limit, for a negative number, as in Kafka."""
    return None if value < 0 else value
