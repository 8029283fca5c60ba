"""The options of Spark's Kafka source and sink, and more of Rota: from strings to values. Pure.

Laws
    Names (in any case), meanings, defaults and precedence are those of Spark's `kafka` format, except where
    docs/SPARK.md says otherwise.
    An unknown option, or one that contradicts another option, is refused when the source is loaded, with its name and
    the valid names; no option is ignored silently, also not one without a value (SP18).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from rota.client.config import ConsumerConfig, ProducerConfig
from rota.client.errors import ConfigError
from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass
from rota.spark_connector.errors import OptionError
from rota.spark_connector.offsets import (
    EARLIEST,
    INT64_MAX,
    INT64_MIN,
    LATEST,
    Offsets,
    parse_assignment,
    parse_offsets,
    parse_times,
)

KAFKA: Final = "kafka."
SUBSCRIPTION: Final = ("assign", "subscribe", "subscribePattern")
STARTING: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")  # the first one given wins
ENDING: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
COMMON: Final = (
    *SUBSCRIPTION,
    *STARTING,
    "startingOffsetsByTimestampStrategy",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "groupIdPrefix",
    "group.id",
)
BATCH: Final = (*COMMON, *ENDING)
STREAM: Final = (
    *COMMON,
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minRecordsPerPartition",
)
WRITE: Final = ("topic", "includeHeaders", "decisionTopic")
TRANSACTIONAL_ID: Final = "kafka.transactional.id"
SPARK_OPTIONS: Final = ("path", "checkpointLocation")  # Spark passes them to the source with the others
SERVERS: Final = "kafka.bootstrap.servers"
WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}

# settings that the source sets itself, as Spark's does, and what to use instead
FORBIDDEN: Final = {
    "kafka.auto.offset.reset": "startingOffsets",
    "kafka.key.deserializer": "a cast of the column key",
    "kafka.value.deserializer": "a cast of the column value",
    "kafka.key.serializer": "a cast of the column key",
    "kafka.value.serializer": "a cast of the column value",
    "kafka.enable.auto.commit": "group.id, which commits the end of each micro-batch",
    "kafka.interceptor.classes": "nothing: interceptors are not supported",
}
TRANSACTION_TIMEOUT_MS: Final = 900_000  # transaction.max.timeout.ms of a broker by default
TRIGGER_DELAY_MAX_MS: Final = 900_000
RECORDS_PER_PARTITION_MIN: Final = 5_000  # minRecordsPerPartition
OFFSET_RETRIES: Final = 3  # fetchOffset.numRetries
OFFSET_RETRY_INTERVAL_MS: Final = 1_000  # fetchOffset.retryIntervalMs
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TIME: Final = re.compile(r"-?[0-9]{1,19}")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_DURATION: Final = re.compile(r"\s*([0-9]{1,19})\s*([a-z]*)\s*")


@dataclass(frozen=True, slots=True)
class OffsetBound:
    """Where a query starts or ends. One of: `offset` (EARLIEST or LATEST) or `time_ms` for all partitions, `offsets` or
    `times` (ms) by partition. `from_group`: the group's committed offsets, and `offset` where it has none."""

    option: str
    offset: int | None = None
    time_ms: int | None = None
    offsets: Offsets | None = None
    times: Offsets | None = None
    from_group: bool = False

    @property
    def has_time(self) -> bool:
        return self.time_ms is not None or self.times is not None

    def times_of(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The time of each partition, in ms. Empty when the bound has no time."""
        return dict(self.times or {}) if self.time_ms is None else dict.fromkeys(partitions, self.time_ms)


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """The topics or partitions that are read: exactly one of the three is set."""

    assigned: tuple[TopicPartition, ...] | None = None
    names: tuple[str, ...] | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a batch or a stream. `client` has the kafka.* options without their prefix."""

    topics: TopicSelection
    client: Mapping[str, str] = field(repr=False)
    starting: OffsetBound
    ending: OffsetBound
    latest_when_no_time: bool  # startingOffsetsByTimestampStrategy
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    include_headers: bool
    group_id: str | None
    offsets_per_trigger_max: int | None = None
    offsets_per_trigger_min: int | None = None
    trigger_delay_max_ms: int = TRIGGER_DELAY_MAX_MS
    min_records_per_partition: int = RECORDS_PER_PARTITION_MIN  # of a stream
    offset_retries: int = OFFSET_RETRIES  # before missing records are reported as lost
    offset_retry_interval_ms: int = OFFSET_RETRY_INTERVAL_MS


@dataclass(frozen=True, slots=True)
class Transactions:
    """How a sink writes in transactions. `prefix`: what its transactional ids begin with."""

    prefix: str
    decision_topic: str


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a sink. `topic` None: each row names its topic. `transactions` None: it writes without them."""

    client: Mapping[str, str] = field(repr=False)
    topic: str | None
    include_headers: bool
    transactions: Transactions | None = None


def batch_options(options: Mapping[str, str]) -> ReadOptions:
    """Raises OptionError."""
    return _read_options(_RawOptions(options, BATCH, "a batch query"), "earliest", streaming=False)


def stream_options(options: Mapping[str, str]) -> ReadOptions:
    """Raises OptionError."""
    for name in ENDING:
        value = next((value for given, value in options.items() if given.lower() == name.lower()), None)
        if value is not None:
            raise OptionError(name, value, "left out: a stream has no end (use trigger(availableNow=True))")
    return _read_options(_RawOptions(options, STREAM, "a stream"), "latest", streaming=True)


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Raises OptionError."""
    raw = _RawOptions(options, WRITE, "a sink")
    client = raw.client()
    _validate_client(ProducerConfig, client)
    transactions = _transactions(raw, client.pop("transactional.id", None))
    if transactions is not None:
        client.setdefault("transaction.timeout.ms", str(TRANSACTION_TIMEOUT_MS))
    return WriteOptions(client, raw.text("topic"), raw.boolean("includeHeaders", True), transactions)


def _transactions(raw: _RawOptions, prefix: str | None) -> Transactions | None:
    topic = raw.text("decisionTopic")
    if prefix is None:
        if topic is not None:
            raise OptionError("decisionTopic", topic, f"given together with {TRANSACTIONAL_ID}, or left out")
        return None
    topic = f"{prefix}-decisions" if topic is None else topic
    if not _TOPIC.fullmatch(topic):
        expected = f"a topic's name; without it, {TRANSACTIONAL_ID} is its beginning: letters, digits and ._-"
        raise OptionError("decisionTopic", topic, expected)
    if topic == raw.text("topic"):
        expected = "another topic than that of the records: what a task leaves open there would hide the decisions"
        raise OptionError("decisionTopic", topic, expected)
    return Transactions(prefix, topic)


class _RawOptions:
    """The options as the user wrote them; names in any case."""

    def __init__(self, options: Mapping[str, str], valid: tuple[str, ...], query: str) -> None:
        self._values = {name.lower(): str(value) for name, value in options.items()}
        known = {name.lower() for name in (*valid, *SPARK_OPTIONS)}
        for name in options:
            low = name.lower()
            if low in FORBIDDEN:
                raise OptionError(name, options[name], f"left out; use {FORBIDDEN[low]}")
            if low == TRANSACTIONAL_ID and valid is not WRITE:
                raise OptionError(name, options[name], "left out: only a sink writes in transactions")
            if low not in known and not low.startswith(KAFKA):
                raise OptionError(name, options[name], _expected_name(name, valid, query))
            if not self._values[low].strip() and low in {option.lower() for option in valid}:
                raise OptionError(name, options[name], "left out, or given a value")

    def text(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.strip().lower() not in ("true", "false"):
            raise OptionError(name, value, "true or false")
        return value.strip().lower() == "true"

    def integer(self, name: str, least: int = 1) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        number = int(value) if _INTEGER.fullmatch(value.strip()) else least - 1
        if not least <= number <= INT64_MAX:
            raise OptionError(name, value, f"an integer of at least {least}")
        return number

    def client(self) -> dict[str, str]:
        """The kafka.* options without the prefix. Raises OptionError when kafka.bootstrap.servers is missing."""
        settings = {name[len(KAFKA) :]: value for name, value in self._values.items() if name.startswith(KAFKA)}
        if not settings.get("bootstrap.servers", "").strip():
            raise OptionError(SERVERS, settings.get("bootstrap.servers"), "given: HOST:PORT,HOST:PORT of some brokers")
        return settings


def _expected_name(name: str, valid: tuple[str, ...], query: str) -> str:
    near = difflib.get_close_matches(name.lower(), [option.lower() for option in valid], 1)
    similar = next((option for option in valid if near and option.lower() == near[0]), None)
    return (f"spelled {similar}; " if similar else "") + f"one of the options of {query}: {', '.join(valid)}, kafka.*"


def _read_options(raw: _RawOptions, default_start: str, *, streaming: bool) -> ReadOptions:
    client = raw.client()
    client.pop("group.id", None)  # as in Spark's source, nothing is committed to it; and no task joins a group here
    _validate_client(ConsumerConfig, client)
    starting = _offset_bound(raw, STARTING, default_start, streaming=streaming)
    group = raw.text("group.id")
    if starting.from_group and not group:
        raise OptionError("startingOffsets", "group", "used together with group.id")
    strategy = raw.text("startingOffsetsByTimestampStrategy") or "error"
    if strategy not in ("error", "latest"):
        raise OptionError("startingOffsetsByTimestampStrategy", strategy, "error or latest")
    least, most = raw.integer("minOffsetsPerTrigger"), raw.integer("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OptionError("minOffsetsPerTrigger", least, f"at most maxOffsetsPerTrigger, {most}")
    delay = raw.text("maxTriggerDelay")
    retries, interval = raw.integer("fetchOffset.numRetries", 0), raw.integer("fetchOffset.retryIntervalMs", 0)
    small = raw.integer("minRecordsPerPartition", 0)
    latest = OffsetBound("endingOffsets", offset=LATEST)
    return ReadOptions(
        topics=_topic_selection(raw),
        client=client,
        starting=starting,
        ending=latest if streaming else _offset_bound(raw, ENDING, "latest"),
        latest_when_no_time=strategy == "latest",
        min_partitions=raw.integer("minPartitions"),
        max_records_per_partition=raw.integer("maxRecordsPerPartition"),
        fail_on_data_loss=raw.boolean("failOnDataLoss", True),
        include_headers=raw.boolean("includeHeaders", False),
        group_id=group,
        offsets_per_trigger_max=most,
        offsets_per_trigger_min=least,
        trigger_delay_max_ms=TRIGGER_DELAY_MAX_MS if delay is None else parse_duration_ms("maxTriggerDelay", delay),
        min_records_per_partition=RECORDS_PER_PARTITION_MIN if small is None else small,
        offset_retries=OFFSET_RETRIES if retries is None else retries,
        offset_retry_interval_ms=OFFSET_RETRY_INTERVAL_MS if interval is None else interval,
    )


def _topic_selection(raw: _RawOptions) -> TopicSelection:
    given = [name for name in SUBSCRIPTION if raw.text(name) is not None]
    if len(given) != 1:
        raise OptionError(
            ", ".join(given) or "subscribe",
            "given together" if given else None,
            f"exactly one of {', '.join(SUBSCRIPTION)}",
        )
    (option,) = given
    text = raw.text(option) or ""
    if option == "assign":
        return TopicSelection(assigned=parse_assignment(text, option))
    if option == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(option, text, f"a regular expression ({error})") from None
        return TopicSelection(pattern=text)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names or not all(_TOPIC.fullmatch(name) for name in names):
        raise OptionError(option, text, "topics, separated by commas, as in orders,payments")
    return TopicSelection(names=names)


def _offset_bound(
    raw: _RawOptions, names: tuple[str, str, str], default: str, *, streaming: bool = False
) -> OffsetBound:
    """Read the first of the three options that is given: a time for all partitions, times by partition, offsets."""
    by_time, by_times, by_offsets = names
    if (text := raw.text(by_time)) is not None:
        return OffsetBound(by_time, time_ms=_time_ms(by_time, text))
    if (text := raw.text(by_times)) is not None:
        return OffsetBound(by_times, times=parse_times(text, by_times))
    is_start = names is STARTING
    text = (raw.text(by_offsets) or default).strip()
    word = text.lower()
    if word == "group" and is_start:
        return OffsetBound(by_offsets, offset=EARLIEST if default == "earliest" else LATEST, from_group=True)
    empty = None if streaming else LATEST if is_start else EARLIEST  # a batch that starts or ends there has no records
    if word in WORDS:
        if WORDS[word] == empty:
            raise OptionError(by_offsets, text, f"{default} or JSON in a batch query: it would read nothing")
        return OffsetBound(by_offsets, offset=WORDS[word])
    if not text.startswith("{"):
        words = "earliest, latest, group" if is_start else "latest"
        raise OptionError(by_offsets, text, f'{words} or JSON as in {{"topic": {{"0": 12}}}}')
    offsets = parse_offsets(text, by_offsets)
    if empty in offsets.values():
        raise OptionError(by_offsets, text, f"without {empty} in a batch query: it would read nothing")
    return OffsetBound(by_offsets, offsets=offsets)


def _time_ms(option: str, text: str) -> int:
    if _TIME.fullmatch(text.strip()) is None or not INT64_MIN <= int(text) <= INT64_MAX:
        raise OptionError(option, text, "milliseconds since the epoch")
    return int(text)


def parse_duration_ms(option: str, text: str) -> int:
    """15m, 90s, 200ms; a number without a unit is milliseconds, as in Spark. Raises OptionError."""
    match = _DURATION.fullmatch(text.lower())
    if match is None or (match[2] and match[2] not in _UNITS_MS):
        raise OptionError(option, text, f"a number and one of {', '.join(_UNITS_MS)}, as in 15m")
    duration_ms = int(match[1]) * _UNITS_MS[match[2] or "ms"]
    if duration_ms > INT64_MAX:
        raise OptionError(option, text, f"at most {INT64_MAX} ms")
    return duration_ms


def _validate_client(config: type[ConsumerConfig | ProducerConfig], client: Mapping[str, str]) -> None:
    try:
        _ = config.from_properties(client).bootstrap
    except ConfigError as error:
        names = ", ".join(client)  # not the values, which may be secrets
        raise OptionError("kafka.*", names, f"settings of the client: {error}") from None
