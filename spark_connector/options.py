"""The options of Spark's Kafka source and sink, and Rota's own two: from strings to values. Pure.

Laws
    Names (in any case), meanings, defaults and precedence are those of Spark's `kafka` format; what Rota adds says so.
    An option that is not known, or that contradicts another one, is refused when the source is loaded, with its name
    and the valid ones; nothing is ignored in silence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rota.client.config import ConsumerConfig, ProducerConfig
from rota.client.errors import ConfigError
from rota.client.types import TopicPartition
from rota.spark_connector.errors import OptionError
from rota.spark_connector.offsets import (
    EARLIEST,
    INT64_MAX,
    INT64_MIN,
    LATEST,
    Offsets,
    read_assignment,
    read_offsets,
    read_times,
)

KAFKA: Final = "kafka."
SUBSCRIBING: Final = ("assign", "subscribe", "subscribePattern")
STARTING: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")  # the first that is given wins
ENDING: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
COMMON: Final = (
    *SUBSCRIBING,
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
STREAM: Final = (*COMMON, "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
WRITE: Final = ("topic", "includeHeaders")
SPARKS_OWN: Final = ("path", "checkpointLocation")  # which Spark hands on with the rest
SERVERS: Final = "kafka.bootstrap.servers"

# what the source decides itself, as Spark's does
FORBIDDEN: Final = {
    "kafka.auto.offset.reset": "startingOffsets",
    "kafka.key.deserializer": "a cast of the column key",
    "kafka.value.deserializer": "a cast of the column value",
    "kafka.key.serializer": "a cast of the column key",
    "kafka.value.serializer": "a cast of the column value",
    "kafka.enable.auto.commit": "group.id, which commits the end of each micro-batch",
    "kafka.interceptor.classes": "nothing: there is no such thing here",
    "kafka.group.id": "group.id",
}
TRIGGER_DELAY_MAX_MS: Final = 900_000
OFFSET_TRIES: Final = 3  # fetchOffset.numRetries
OFFSET_PAUSE_MS: Final = 1_000  # fetchOffset.retryIntervalMs
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TIME: Final = re.compile(r"-?[0-9]{1,19}")
_DELAY: Final = re.compile(r"\s*(\d+)\s*([a-z]*)\s*")


@dataclass(frozen=True, slots=True)
class Edge:
    """Where a query starts or ends: `offsets` by partition, `times` (ms) by partition, or `everywhere`, one offset
    (EARLIEST, LATEST) or one time for all; `from_group`: where the group stands."""

    everywhere: int | None = None
    time_ms: int | None = None
    offsets: Offsets | None = None
    times: Offsets | None = None
    from_group: bool = False
    option: str = ""


@dataclass(frozen=True, slots=True)
class Topics:
    """What is read: exactly one of the three."""

    assigned: tuple[TopicPartition, ...] | None = None
    names: tuple[str, ...] | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a batch or a stream is told. `client` are the kafka.* options without their prefix."""

    topics: Topics
    client: Mapping[str, str]
    starting: Edge
    ending: Edge
    latest_when_no_time: bool  # startingOffsetsByTimestampStrategy
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    include_headers: bool
    group_id: str | None
    offsets_per_trigger_max: int | None = None
    offsets_per_trigger_min: int | None = None
    trigger_delay_max_ms: int = TRIGGER_DELAY_MAX_MS
    offset_tries: int = OFFSET_TRIES  # before data that seems to be lost is called lost
    offset_pause_ms: int = OFFSET_PAUSE_MS


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a sink is told. `topic` None: each row names its own."""

    client: Mapping[str, str]
    topic: str | None
    include_headers: bool


def batch_options(options: Mapping[str, str]) -> ReadOptions:
    """Raises OptionError."""
    return _reading(_Given(options, BATCH, "a batch query"), "earliest", streaming=False)


def stream_options(options: Mapping[str, str]) -> ReadOptions:
    """Raises OptionError."""
    for name in ENDING:
        if name.lower() in {given.lower() for given in options}:
            raise OptionError(name, options.get(name), "left out: a stream has no end (use trigger(availableNow=True))")
    return _reading(_Given(options, STREAM, "a stream"), "latest", streaming=True)


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Raises OptionError."""
    given = _Given(options, WRITE, "a sink")
    client = given.client()
    _checked(ProducerConfig, client)
    return WriteOptions(client, given.text("topic"), given.flag("includeHeaders", True))


class _Given:
    """The options as they were given; names in any case."""

    def __init__(self, options: Mapping[str, str], valid: tuple[str, ...], what: str) -> None:
        self._values = {name.lower(): str(value) for name, value in options.items()}
        known = {name.lower() for name in (*valid, *SPARKS_OWN)}
        for name in options:
            low = name.lower()
            if low in FORBIDDEN:
                raise OptionError(name, options[name], f"left out; use {FORBIDDEN[low]}")
            if low not in known and not low.startswith(KAFKA):
                raise OptionError(name, options[name], _hint(name, valid, what))

    def text(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def flag(self, name: str, default: bool) -> bool:
        given = self.text(name)
        if given is None:
            return default
        if given.strip().lower() not in ("true", "false"):
            raise OptionError(name, given, "true or false")
        return given.strip().lower() == "true"

    def number(self, name: str, least: int = 1) -> int | None:
        given = self.text(name)
        if given is None:
            return None
        try:
            number = int(given)
        except ValueError:
            number = least - 1
        if number < least:
            raise OptionError(name, given, f"an integer of at least {least}")
        return number

    def client(self) -> dict[str, str]:
        """kafka.bootstrap.servers and its like, without the prefix."""
        found = {name[len(KAFKA) :]: value for name, value in self._values.items() if name.startswith(KAFKA)}
        if not found.get("bootstrap.servers", "").strip():
            raise OptionError(SERVERS, found.get("bootstrap.servers"), "given: HOST:PORT,HOST:PORT of some brokers")
        return found


def _hint(name: str, valid: tuple[str, ...], what: str) -> str:
    near = difflib.get_close_matches(name.lower(), [one.lower() for one in valid], 1)
    meant = next((one for one in valid if near and one.lower() == near[0]), None)
    return (f"spelled {meant}; " if meant else "") + f"one of the options of {what}: {', '.join(valid)}, kafka.*"


def _reading(given: _Given, start: str, *, streaming: bool) -> ReadOptions:
    client = given.client()
    _checked(ConsumerConfig, client)
    starting = _edge(given, STARTING, start, streaming=streaming)
    group = given.text("group.id")
    if starting.from_group and not group:
        raise OptionError("startingOffsets", "group", "used together with group.id")
    strategy = given.text("startingOffsetsByTimestampStrategy") or "error"
    if strategy not in ("error", "latest"):
        raise OptionError("startingOffsetsByTimestampStrategy", strategy, "error or latest")
    least, most = given.number("minOffsetsPerTrigger"), given.number("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OptionError("minOffsetsPerTrigger", least, f"at most maxOffsetsPerTrigger, {most}")
    delay = given.text("maxTriggerDelay")
    tries, pause = given.number("fetchOffset.numRetries", 0), given.number("fetchOffset.retryIntervalMs", 0)
    return ReadOptions(
        topics=_topics(given),
        client=client,
        starting=starting,
        ending=Edge(everywhere=LATEST, option="endingOffsets") if streaming else _edge(given, ENDING, "latest"),
        latest_when_no_time=strategy == "latest",
        min_partitions=given.number("minPartitions"),
        max_records_per_partition=given.number("maxRecordsPerPartition"),
        fail_on_data_loss=given.flag("failOnDataLoss", True),
        include_headers=given.flag("includeHeaders", False),
        group_id=group,
        offsets_per_trigger_max=most,
        offsets_per_trigger_min=least,
        trigger_delay_max_ms=TRIGGER_DELAY_MAX_MS if delay is None else milliseconds("maxTriggerDelay", delay),
        offset_tries=OFFSET_TRIES if tries is None else tries,
        offset_pause_ms=OFFSET_PAUSE_MS if pause is None else pause,
    )


def _topics(given: _Given) -> Topics:
    found = [name for name in SUBSCRIBING if given.text(name) is not None]
    if len(found) != 1:
        raise OptionError(
            ", ".join(found) or "subscribe",
            "given together" if found else None,
            f"exactly one of {', '.join(SUBSCRIBING)}",
        )
    (name,) = found
    text = given.text(name) or ""
    if name == "assign":
        return Topics(assigned=read_assignment(text, name))
    if name == "subscribePattern":
        try:
            re.compile(text)
        except re.error as wrong:
            raise OptionError(name, text, f"a regular expression ({wrong})") from None
        return Topics(pattern=text)
    names = tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    if not names or not all(_TOPIC.fullmatch(one) for one in names):
        raise OptionError(name, text, "topics, separated by commas, as in orders,payments")
    return Topics(names=names)


def _edge(given: _Given, names: tuple[str, str, str], default: str, *, streaming: bool = False) -> Edge:
    """The first of the three that is given: a time for all, times by partition, offsets."""
    at, by_partition, offsets = names
    is_start = names is STARTING
    if (text := given.text(at)) is not None:
        return Edge(time_ms=_time(at, text), option=at)
    if (text := given.text(by_partition)) is not None:
        return Edge(times=read_times(text, by_partition), option=by_partition)
    text = (given.text(offsets) or default).strip()
    word = text.lower()
    if word == "group" and is_start:
        return Edge(from_group=True, everywhere=EARLIEST if default == "earliest" else LATEST, option=offsets)
    if word in ("earliest", "latest"):
        if not streaming and word == ("latest" if is_start else "earliest"):
            raise OptionError(offsets, text, f"{default} or JSON in a batch query: there would be nothing to read")
        return Edge(everywhere=EARLIEST if word == "earliest" else LATEST, option=offsets)
    if not text.startswith("{"):
        words = "earliest, latest, group" if is_start else "latest"
        raise OptionError(offsets, text, f'{words} or JSON as in {{"topic": {{"0": 12}}}}')
    found = read_offsets(text, offsets)
    barred = None if streaming else LATEST if is_start else EARLIEST
    if barred in found.values():
        raise OptionError(offsets, text, f"without {barred} in a batch query: there would be nothing to read")
    return Edge(offsets=found, option=offsets)


def _time(option: str, text: str) -> int:
    found = _TIME.fullmatch(text.strip())
    if found is None or not INT64_MIN <= int(text) <= INT64_MAX:
        raise OptionError(option, text, "milliseconds since the epoch")
    return int(text)


def milliseconds(option: str, text: str) -> int:
    """15m, 90s, 200ms; a bare number is milliseconds, as in Spark. Raises OptionError."""
    found = _DELAY.fullmatch(text.lower())
    if found is None or (found[2] and found[2] not in _UNITS_MS):
        raise OptionError(option, text, f"a number and one of {', '.join(_UNITS_MS)}, as in 15m")
    return int(found[1]) * _UNITS_MS[found[2] or "ms"]


def _checked(config: type[ConsumerConfig | ProducerConfig], client: Mapping[str, str]) -> None:
    try:
        _ = config.from_properties(client).bootstrap
    except ConfigError as wrong:
        names = ", ".join(client)  # the values may be secrets
        raise OptionError("kafka.*", names, f"settings of the client: {wrong}") from None
