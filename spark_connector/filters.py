"""Filters on topic, partition, offset and timestamp as bounds of the read ranges. Pure.

Laws
    The bounds never exclude a record that passes the filters.
    A filter that the bounds imply is taken from Spark; a filter that only narrows the bounds stays with Spark as well
    (timestamps are not in the order of offsets).
    Brokers look up times above 0 only. A filter on an earlier time sets no bound: every record may pass it, also one
    without a timestamp (-1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from rota.protocol.dataclass import dataclass
from rota.spark_connector.offsets import OffsetRange
from rota.spark_connector.spark_api import (
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

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
OFFSET_MAX: Final = (1 << 63) - 1
NEVER_NULL: Final = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})


@dataclass(slots=True)
class PushedFilters:
    """The bounds that filters set: predicates on topic and partition, offsets `first_offset` to `end_offset` - 1, and a
    minimal timestamp in ms."""

    partition_filters: list[Filter] = field(default_factory=list)  # on topic or partition; all of them must hold
    first_offset: int = 0
    end_offset: int = OFFSET_MAX
    min_time_ms: int | None = None

    def can_pass(self, topic: str, partition: int) -> bool:
        """Whether records of this partition can pass."""
        return all(_holds(condition, topic, partition) for condition in self.partition_filters)

    def narrow(self, offsets: OffsetRange) -> OffsetRange:
        """The part of the range that can pass, perhaps empty. Does not use `min_time_ms`, which brokers look up."""
        accepted = self.can_pass(offsets.topic, offsets.partition)
        start = min(max(offsets.start, self.first_offset), offsets.end) if accepted else offsets.end
        return OffsetRange(offsets.topic, offsets.partition, start, max(start, min(offsets.end, self.end_offset)))


def push_filters(filters: Iterable[Filter]) -> tuple[PushedFilters, list[Filter]]:
    """The bounds that the filters set (all of them must hold), and the filters that Spark still has to evaluate."""
    pushed = PushedFilters()
    remaining = [condition for condition in filters if not _push(condition, pushed)]
    return pushed, remaining


def _push(condition: Filter, pushed: PushedFilters) -> bool:
    """Add the filter to the bounds. True when the bounds imply the filter."""
    column = _column(condition)
    if isinstance(condition, IsNotNull) and column in NEVER_NULL:
        return True
    if column in ("topic", "partition") and _is_supported(condition):
        pushed.partition_filters.append(condition)
        return True
    if column == "offset":
        return _push_offset(condition, pushed)
    if column == "timestamp":
        _push_time(condition, pushed)
    return False


def _push_offset(condition: Filter, pushed: PushedFilters) -> bool:
    first, end, implied = pushed.first_offset, pushed.end_offset, True
    match condition:
        case EqualTo(value=int(value)) | EqualNullSafe(value=int(value)):
            first, end = max(first, value), min(end, value + 1)
        case GreaterThan(value=int(value)):
            first = max(first, value + 1)
        case GreaterThanOrEqual(value=int(value)):
            first = max(first, value)
        case LessThan(value=int(value)):
            end = min(end, value)
        case LessThanOrEqual(value=int(value)):
            end = min(end, value + 1)
        case In(value=values) if values and all(isinstance(value, int) for value in values):
            first, end, implied = max(first, min(values)), min(end, max(values) + 1), False
        case _:
            implied = False
    pushed.first_offset, pushed.end_offset = first, end
    return implied


def _push_time(condition: Filter, pushed: PushedFilters) -> None:
    match condition:
        case EqualTo(value=datetime() as value) | GreaterThan(value=datetime() as value):
            pass
        case GreaterThanOrEqual(value=datetime() as value) | EqualNullSafe(value=datetime() as value):
            pass
        case _:
            return
    time_ms = _milliseconds(value)
    if time_ms is not None and time_ms > 0:
        pushed.min_time_ms = time_ms if pushed.min_time_ms is None else max(pushed.min_time_ms, time_ms)


def _milliseconds(value: datetime) -> int | None:
    """Since the epoch, rounded down; None for a local time outside the platform's range."""
    try:
        return ((value if value.tzinfo else value.astimezone()) - EPOCH) // timedelta(milliseconds=1)
    except (OverflowError, ValueError, OSError):
        return None


def _holds(condition: Filter, topic: str, partition: int) -> bool:
    """Evaluate a filter on topic or partition."""
    if isinstance(condition, Not):
        return not _holds(condition.child, topic, partition)
    value: Any = topic if _column(condition) == "topic" else partition
    match condition:
        case EqualTo(value=expected) | EqualNullSafe(value=expected):
            return bool(value == expected)
        case In(value=expected):
            return value in expected
        case GreaterThan(value=expected):
            return bool(value > expected)
        case GreaterThanOrEqual(value=expected):
            return bool(value >= expected)
        case LessThan(value=expected):
            return bool(value < expected)
        case LessThanOrEqual(value=expected):
            return bool(value <= expected)
        case StringStartsWith(value=expected):
            return topic.startswith(expected)
        case StringEndsWith(value=expected):
            return topic.endswith(expected)
        case StringContains(value=expected):
            return expected in topic
    return True


def _is_supported(condition: Filter) -> bool:
    """Whether `_holds` can evaluate the filter: it is of a known type, and no value is null."""
    if isinstance(condition, Not):
        return _is_supported(condition.child)
    if isinstance(condition, In):
        return None not in condition.value
    comparisons = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
    matches = (StringStartsWith, StringEndsWith, StringContains)
    return isinstance(condition, comparisons + matches) and condition.value is not None


def _column(condition: Filter) -> str | None:
    if isinstance(condition, Not):
        return _column(condition.child)
    path = getattr(condition, "attribute", None)
    return path[0] if path is not None and len(path) == 1 else None
