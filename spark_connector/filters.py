"""Filters of a query that narrow what is read: on topic, partition, offset, timestamp. Pure.

Laws
    Narrowing never leaves out a record that the filters let through.
    A filter that is fully kept by the ranges is taken from Spark; one that only narrows (a timestamp, whose order is
    the producers' affair) is left to Spark as well.
    Brokers look up times above 0 only: a filter on an earlier time narrows nothing, as every record may pass it, also
    one without a timestamp (-1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from rota.spark_connector.offsets import OffsetRange

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
OFFSET_MAX: Final = (1 << 63) - 1
NEVER_NULL: Final = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})


@dataclass(slots=True)
class Narrowing:
    """What the filters leave: predicates on topic and partition, offsets first … stop-1, not before a time (ms)."""

    of_place: list[Filter] = field(default_factory=list)  # on topic or partition, all of which must hold
    first: int = 0
    stop: int = OFFSET_MAX
    time_ms: int | None = None

    def keeps(self, topic: str, partition: int) -> bool:
        """Whether records of this partition can pass."""
        return all(_holds(one, topic, partition) for one in self.of_place)

    def cut(self, given: OffsetRange) -> OffsetRange:
        """The part of the range that can pass; empty when none can. The time is not looked at: brokers know it."""
        start = min(max(given.start, self.first), given.end) if self.keeps(given.topic, given.partition) else given.end
        return OffsetRange(given.topic, given.partition, start, max(start, min(given.end, self.stop)))


def narrowed(filters: Iterable[Filter]) -> tuple[Narrowing, list[Filter]]:
    """What the filters (all of which must hold) leave to read, and which of them Spark has still to evaluate."""
    found, rest = Narrowing(), []
    for one in filters:
        if not _taken(one, found):
            rest.append(one)
    return found, rest


def _taken(one: Filter, found: Narrowing) -> bool:
    """True when the ranges will keep the filter by themselves."""
    column = _column(one)
    if isinstance(one, IsNotNull) and column in NEVER_NULL:
        return True
    if column in ("topic", "partition") and _is_known(one):
        found.of_place.append(one)
        return True
    if column == "offset":
        return _offsets(one, found)
    if column == "timestamp":
        _time(one, found)
    return False


def _offsets(one: Filter, found: Narrowing) -> bool:
    match one:
        case EqualTo(value=int(value)) | EqualNullSafe(value=int(value)):
            found.first, found.stop = max(found.first, value), min(found.stop, value + 1)
        case GreaterThan(value=int(value)):
            found.first = max(found.first, value + 1)
        case GreaterThanOrEqual(value=int(value)):
            found.first = max(found.first, value)
        case LessThan(value=int(value)):
            found.stop = min(found.stop, value)
        case LessThanOrEqual(value=int(value)):
            found.stop = min(found.stop, value + 1)
        case In(value=values) if values and all(isinstance(value, int) for value in values):
            found.first, found.stop = max(found.first, min(values)), min(found.stop, max(values) + 1)
            return False
        case _:
            return False
    return True


def _time(one: Filter, found: Narrowing) -> None:
    match one:
        case EqualTo(value=datetime() as value) | GreaterThan(value=datetime() as value):
            pass
        case GreaterThanOrEqual(value=datetime() as value) | EqualNullSafe(value=datetime() as value):
            pass
        case _:
            return
    at = _milliseconds(value)
    if at is not None and at > 0:
        found.time_ms = at if found.time_ms is None else max(found.time_ms, at)


def _milliseconds(value: datetime) -> int | None:
    """Since the epoch, rounded down; None for a local time that the platform cannot place."""
    try:
        return ((value if value.tzinfo else value.astimezone()) - EPOCH) // timedelta(milliseconds=1)
    except (OverflowError, ValueError, OSError):
        return None


def _holds(one: Filter, topic: str, partition: int) -> bool:
    """A filter on topic or partition, for these."""
    if isinstance(one, Not):
        return not _holds(one.child, topic, partition)
    value: Any = topic if _column(one) == "topic" else partition
    match one:
        case EqualTo(value=wanted) | EqualNullSafe(value=wanted):
            return bool(value == wanted)
        case In(value=wanted):
            return value in wanted
        case GreaterThan(value=wanted):
            return bool(value > wanted)
        case GreaterThanOrEqual(value=wanted):
            return bool(value >= wanted)
        case LessThan(value=wanted):
            return bool(value < wanted)
        case LessThanOrEqual(value=wanted):
            return bool(value <= wanted)
        case StringStartsWith(value=wanted):
            return topic.startswith(wanted)
        case StringEndsWith(value=wanted):
            return topic.endswith(wanted)
        case StringContains(value=wanted):
            return wanted in topic
    return True


def _is_known(one: Filter) -> bool:
    """Whether `_holds` can answer: no null among the values, and a kind that it knows."""
    if isinstance(one, Not):
        return _is_known(one.child)
    if isinstance(one, In):
        return None not in one.value
    kinds = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
    texts = (StringStartsWith, StringEndsWith, StringContains)
    return isinstance(one, kinds + texts) and one.value is not None


def _column(one: Filter) -> str | None:
    if isinstance(one, Not):
        return _column(one.child)
    path = getattr(one, "attribute", None)
    return path[0] if path is not None and len(path) == 1 else None
