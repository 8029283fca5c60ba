"""The lag of a group as the health rules need it, from what any broker says over the protocol. Pure.

Laws
    CL15 A trend is measured between two looks at the lag. The second one is taken only where a partition may be stuck:
         it has the unread records of a finding, and its topic has other partitions.
    CL16 The offsets of an Empty group expire offsets.retention.minutes after it became empty, which its timeline says.
         Of other offsets the protocol does not say when they were committed: their expiry is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rota.coordinator.observe.finding import DEFAULTS
from rota.coordinator.observe.lag import UNKNOWN, GroupLag, PartitionLag, total
from rota.protocol.group_timeline import EventType, GroupEvent

if TYPE_CHECKING:
    from rota.client import GroupDescription

Offset = Mapping[str, Any]  # a partition's lag as `group_details.lag_documents` returns it
Key = tuple[str, int]


def is_possibly_stuck(offsets: Iterable[Offset]) -> bool:
    """Return whether one partition of several of a topic has as many unread records as a stuck one."""
    known = [each for each in offsets if each["lag"] is not None]
    counts = Counter(each["topic"] for each in known)
    return any(each["lag"] >= DEFAULTS.stuck_records and counts[each["topic"]] > 1 for each in known)


def trends(before: Sequence[Offset], now: Sequence[Offset], seconds: float) -> dict[Key, float]:
    """Return by how many records a second each lag grew; nothing where one of the two is not known."""
    then = {_key(each): each["lag"] for each in before}
    return {
        _key(each): (each["lag"] - then[_key(each)]) / seconds
        for each in now
        if each["lag"] is not None and then.get(_key(each)) is not None and seconds > 0
    }


def expires_ms(group: GroupDescription | None, events: Sequence[GroupEvent], retention_ms: int | None) -> int | None:
    """Return when the offsets of the group expire, ms since the epoch; None where that is not known or never."""
    if group is None or group.state != "Empty" or group.protocol_type != "consumer" or retention_ms is None:
        return None
    emptied = [event.time_ms for event in events if event.type == EventType.EMPTIED]
    return emptied[-1] + retention_ms if emptied else None


def health_lag(
    group: str, time_ms: int, offsets: Sequence[Offset], rates: Mapping[Key, float], expiry_ms: int | None
) -> GroupLag:
    """Return the lag for `observe.health.findings`."""
    partitions = tuple(_partition(each, rates.get(_key(each)), expiry_ms) for each in offsets)
    return total(group, time_ms, "", partitions)


def _partition(offset: Offset, trend: float | None, expiry_ms: int | None) -> PartitionLag:
    seconds = offset["lag_seconds"]
    return PartitionLag(
        topic=offset["topic"],
        partition=offset["partition"],
        committed=_or_unknown(offset["committed"]),
        end=_or_unknown(offset["end"]),
        records=UNKNOWN if offset["lag"] is None else max(offset["lag"], 0),
        age_ms=UNKNOWN if seconds is None else int(seconds * 1000),
        trend=trend or 0.0,
        has_trend=trend is not None,
        expires_ms=UNKNOWN if offset["committed"] is None else _or_unknown(expiry_ms),
        member_id=offset["member"] or "",
    )


def _or_unknown(number: int | None) -> int:
    return UNKNOWN if number is None else number


def _key(offset: Offset) -> Key:
    return offset["topic"], offset["partition"]
