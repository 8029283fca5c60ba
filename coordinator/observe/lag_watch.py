"""Reads the lags of the groups that are coordinated here periodically, so that a stuck partition is found.

Laws
    HL2 Each group is looked at every LOOK_AGAIN_MS, in rounds of ROUND_SECONDS. The end of a partition is that of the
        replica here; of a partition that lives elsewhere it is what the lag service knows (`known`), if anything. The
        trend is that since the last look. Of PARTITIONS_MAX partitions the records of the last look are remembered.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import Final

from rota.coordinator.observe.lag import UNKNOWN, GroupLag, Key, PartitionLag, total
from rota.protocol.dataclass import dataclass

LOOK_AGAIN_MS: Final = 30_000
ROUND_SECONDS: Final = 0.003
PARTITIONS_MAX: Final = 50_000  # of all groups; about 100 bytes each


@dataclass(slots=True)
class _Look:
    """The result of one check of a group."""

    time_ms: int
    records: dict[Key, int]
    trends: dict[Key, float] = field(default_factory=dict)  # records a second


class LagWatch:
    """Looks at groups, round by round. `now_ms` is elapsed time."""

    def __init__(
        self,
        *,
        groups: Callable[[], Iterable[str]],
        offsets: Callable[[str], GroupLag],
        found: Callable[[str], None],
        now_ms: Callable[[], int],
        seconds: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`offsets` returns a lag without ends.

        `found` is called with a group that has a stuck partition. `seconds` is what a round is measured with.
        """
        self._groups, self._offsets, self._found = groups, offsets, found
        self._now_ms, self._seconds = now_ms, seconds
        self.end: Callable[[Key], int] = lambda key: UNKNOWN  # the high watermark of a replica here
        self.cached: Callable[[str], GroupLag | None] = lambda group_id: None  # the lag service's, where there is one
        self._looks: dict[str, _Look] = {}
        self._partitions_count = 0
        self._waiting: deque[str] = deque()
        self._next_ms: int | None = None

    def __len__(self) -> int:
        return len(self._looks)

    def round(self) -> None:
        """Look at the next groups."""
        if not self._waiting:
            self._begin_again()
        end = self._seconds() + ROUND_SECONDS
        while self._waiting:
            self._look(self._waiting.popleft())
            if self._seconds() >= end:
                break

    def _begin_again(self) -> None:
        now_ms = self._now_ms()
        if self._next_ms is not None and now_ms < self._next_ms:
            return
        self._next_ms = now_ms + LOOK_AGAIN_MS
        self._waiting.extend(self._groups())
        for removed in self._looks.keys() - set(self._waiting):
            self._forget(removed)

    def _look(self, group_id: str) -> None:
        lag, before = self._with_ends(self._offsets(group_id)), self._forget(group_id)
        records = {(each.topic, each.partition): each.records for each in lag.partitions if each.records != UNKNOWN}
        if len(lag.partitions) < 2 or self._partitions_count + len(records) > PARTITIONS_MAX:
            return  # a partition is stuck in comparison with others
        look = self._looks[group_id] = _Look(self._now_ms(), records)
        self._partitions_count += len(records)
        if before is not None and look.time_ms > before.time_ms:
            seconds = (look.time_ms - before.time_ms) / 1_000
            look.trends = {
                key: (count - before.records[key]) / seconds for key, count in records.items() if key in before.records
            }
        from rota.coordinator.observe.health import stuck_partitions  # not at the start, which has no groups yet

        if any(stuck_partitions(self._merged(group_id, lag))):
            self._found(group_id)

    def _forget(self, group_id: str) -> _Look | None:
        look = self._looks.pop(group_id, None)
        self._partitions_count -= 0 if look is None else len(look.records)
        return look

    def lag(self, group_id: str) -> GroupLag:
        """Return offsets and ends as of now, and the trends of the last look."""
        return self._merged(group_id, self._with_ends(self._offsets(group_id)))

    def _with_ends(self, lag: GroupLag) -> GroupLag:
        return total(lag.group, lag.time_ms, lag.state, tuple(map(self._with_end, lag.partitions)))

    def _with_end(self, partition: PartitionLag) -> PartitionLag:
        end = self.end((partition.topic, partition.partition))
        if end == UNKNOWN:
            return partition
        return replace(partition, end=end, records=max(end - partition.committed, 0))

    def _merged(self, group_id: str, lag: GroupLag) -> GroupLag:
        look, known = self._looks.get(group_id), self.cached(group_id)
        lags = {} if known is None else {(each.topic, each.partition): each for each in known.partitions}

        def merge(partition: PartitionLag) -> PartitionLag:
            key = partition.topic, partition.partition
            if partition.end == UNKNOWN:
                return lags.get(key, partition)
            trend = None if look is None else look.trends.get(key)
            return partition if trend is None else replace(partition, trend=trend, has_trend=True)

        return total(lag.group, lag.time_ms, lag.state, tuple(map(merge, lag.partitions)))
