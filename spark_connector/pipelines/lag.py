"""The lag of each group at the end of each window, from committed offsets and log end offsets. Pure.

Laws
    From its first commit on, a partition of a group has a row in each window in which any group commits: the growing
    lag of a group that has stopped is visible. The division of records into micro-batches changes no row.
    A deleted offset (expired, deleted, or with its topic) has one row with `committed` None, and none after it.
    The lag in seconds is the age of the first record that the group has not read: at the end of the window, or now.
    An unknown lag is None, never 0. An end offset is never below the committed offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from rota.client.types import TopicPartition

Window = tuple[int, int]  # start and end, ms since the epoch
GroupPartition = tuple[str, str, int]  # group, topic, partition
UnreadOffset = tuple[TopicPartition, int]  # the committed offset of a group with lag
LogAtTime = tuple[int, TopicPartition]  # the end of a window in ms, and a partition

_NO_WINDOW: Final = (-(1 << 62), -(1 << 62))


class GroupPosition(NamedTuple):
    """The committed offset of a group at the end of a window; None: deleted. `source_offset` is that of the record in
    `__consumer_offsets`."""

    window: Window
    group: str
    topic: str
    partition: int
    committed: int | None
    source_offset: int

    @property
    def group_partition(self) -> GroupPartition:
        return self.group, self.topic, self.partition

    @property
    def unread(self) -> UnreadOffset:
        """The first offset that the group has not read; the position has a committed offset."""
        assert self.committed is not None
        return TopicPartition(self.topic, self.partition), self.committed

    @property
    def log_at_time(self) -> LogAtTime:
        """The log, and the time of the end offset from which the lag is computed."""
        return self.window[1], TopicPartition(self.topic, self.partition)


class Lag(NamedTuple):
    """A row of the table lag."""

    position: GroupPosition
    end_offset: int | None
    lag: int | None
    lag_seconds: float | None = None


def positions_by_window(new: Iterable[GroupPosition], previous: Iterable[GroupPosition]) -> list[GroupPosition]:
    """The rows of this micro-batch. `new` are the positions in its records, at most one for each window; `previous` are
    the rows of the last micro-batch."""
    previous = list(previous)
    last = max((position.window for position in previous), default=_NO_WINDOW)
    known = {
        position.group_partition: position
        for position in previous
        if position.window == last and position.committed is not None
    }
    by_window: dict[Window, dict[GroupPartition, GroupPosition]] = {last: {}} if previous else {}
    for position in new:
        by_window.setdefault(position.window, {})[position.group_partition] = position
    rows: list[GroupPosition] = []
    for window, here in sorted(by_window.items()):
        known = {key: position._replace(window=window) for key, position in known.items()}
        # windows before the newest one of the last micro-batch have their rows already
        rows += ({**known, **here} if window >= last else here).values()
        known |= {key: new for key, new in here.items() if _is_newer(new, known.get(key))}
        known = {key: position for key, position in known.items() if position.committed is not None}
    return sorted(rows, key=lambda position: (position.window, position.group_partition))


def _is_newer(position: GroupPosition, known: GroupPosition | None) -> bool:
    return known is None or known.source_offset < position.source_offset


def unread_offsets(lags: Iterable[Lag]) -> dict[UnreadOffset, None]:
    """The committed offsets of groups that have records to read, those of the newest windows first."""
    newest = sorted(lags, key=lambda row: row.position.window, reverse=True)
    return dict.fromkeys(row.position.unread for row in newest if row.lag)


def with_seconds(lags: Iterable[Lag], times_ms: Mapping[UnreadOffset, int], now_ms: int) -> Iterator[Lag]:
    """The lags with their age; `times_ms` are the timestamps of the records at `unread_offsets`."""
    for row in lags:
        if row.lag:
            at_ms = times_ms.get(row.position.unread)
            age_ms = None if at_ms is None or at_ms < 0 else max(0, min(row.position.window[1], now_ms) - at_ms)
            yield row._replace(lag_seconds=None if age_ms is None else age_ms / 1000)
        else:
            yield row._replace(lag_seconds=None if row.lag is None else 0.0)


def with_lags(positions: Iterable[GroupPosition], ends: Mapping[LogAtTime, int]) -> Iterator[Lag]:
    """The positions with their lags."""
    for position in positions:
        end = ends.get(position.log_at_time)
        lag = None if end is None or position.committed is None else max(0, end - position.committed)
        yield Lag(position, end, lag)
