"""The lag of a group: records and time between its committed offsets and the ends of its partitions. Pure.

Law
    O2  What is not known is -1, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rota.protocol.dataclass import dataclass

UNKNOWN: Final = -1

Key = tuple[str, int]  # topic, partition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """The lag of one partition. Times are ms since the epoch, durations ms; -1: not known.

    `trend` is by how many records the lag grew in a second since the time before; negative: it shrinks.
    """

    topic: str
    partition: int
    committed: int  # the next offset to read; -1: nothing committed
    end: int  # the high watermark
    records: int
    age_ms: int
    trend: float
    has_trend: bool
    commit_ms: int = UNKNOWN  # when the offset was committed
    expires_ms: int = UNKNOWN  # when the offset will be removed unless the group becomes active; -1: it will not
    member_id: str = ""  # the owner
    error: str = ""  # why the end or the age is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """The lag of a group. `records` is the sum of the partitions that are known, `age_ms` their largest."""

    group: str
    time_ms: int
    state: str
    partitions: tuple[PartitionLag, ...]
    records: int
    age_ms: int


def total(group: str, time_ms: int, state: str, partitions: tuple[PartitionLag, ...]) -> GroupLag:
    """Return the lag of a group from that of its partitions."""
    known = [partition.records for partition in partitions if partition.records != UNKNOWN]
    return GroupLag(
        group=group,
        time_ms=time_ms,
        state=state,
        partitions=partitions,
        records=sum(known) if known else UNKNOWN,
        age_ms=max((partition.age_ms for partition in partitions), default=UNKNOWN),
    )


@dataclass(frozen=True, slots=True)
class Committed:
    """A group's committed offset for a partition, and the time of its removal unless the group becomes active."""

    offset: int
    commit_ms: int = UNKNOWN
    expires_ms: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """A group as its coordinator knows it: state, offsets, and the member id of each partition's owner."""

    state: str
    committed: Mapping[Key, Committed]
    owners: Mapping[Key, str]


def committed_lag(key: Key, committed: Committed) -> PartitionLag:
    """Return the lag without a known end offset."""
    return PartitionLag(
        topic=key[0],
        partition=key[1],
        committed=committed.offset,
        end=UNKNOWN,
        records=UNKNOWN,
        age_ms=UNKNOWN,
        trend=0.0,
        has_trend=False,
        commit_ms=committed.commit_ms,
        expires_ms=committed.expires_ms,
    )
