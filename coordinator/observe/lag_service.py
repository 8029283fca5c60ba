"""The lags of groups as a service: `await lag.get(group_id)` reads from coordinator and leaders, through a LagSource.

Laws
    GL1 Records are counted to the high watermark. The age is the time since the timestamp of the oldest unread record.
        That is the broker's own time in a topic with LogAppendTime; with CreateTime it is the producer's, and the log
        has no other (protocol/records/unread.py says how it is found). It is 0 when nothing is unread.
    GL2 A group is read at most once in CACHE_MS for all callers, also when that fails; its append times only
        when a commit has moved, and at most APPEND_TIMES_MAX at a time. GROUPS_MAX groups are remembered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, Protocol

from rota.coordinator.observe.lag import UNKNOWN, Committed, GroupLag, GroupOffsets, Key, PartitionLag, total
from rota.protocol.dataclass import dataclass

CACHE_MS: Final = 1_000
GROUPS_MAX: Final = 1_000
NEVER_MS: Final = 1 << 62
APPEND_TIMES_MAX: Final = 256  # of one request: further partitions have no age yet
TREND_MS_MIN: Final = 2_000  # a trend over less says nothing
TREND_MS_MAX: Final = 60_000


class LagSource(Protocol):
    """Reads offsets from coordinators and leaders."""

    async def offsets(self, group_id: str) -> GroupOffsets:
        """Return the offsets and members of a group; raises the error of the source for an unknown group."""

    async def ends(self, keys: list[Key]) -> Mapping[Key, int]:
        """Return the high watermarks; UNKNOWN where the leader does not say."""

    async def append_times(self, offsets: Mapping[Key, int]) -> Mapping[Key, int]:
        """Return when the records at these offsets were appended, ms since the epoch; nothing where that is unknown."""


@dataclass(slots=True)
class _History:
    """The cached values of a group."""

    queried_ms: int | None = None  # elapsed time
    lag: GroupLag | None = None
    failure: Exception | None = None  # of the last time
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    append_times: dict[Key, tuple[int, int]] = field(default_factory=dict)  # (offset, time)
    base: tuple[int, dict[Key, int]] | None = None  # elapsed time and records: what a trend is measured from
    next_base: tuple[int, dict[Key, int]] | None = None


class Lag:
    """The lags of groups. `now_ms` is elapsed time, `wall_ms` ms since the epoch."""

    def __init__(self, source: LagSource, *, now_ms: Callable[[], int], wall_ms: Callable[[], int]) -> None:
        self._source, self._now_ms, self._wall_ms = source, now_ms, wall_ms
        self._groups: OrderedDict[str, _History] = OrderedDict()

    async def get(self, group_id: str) -> GroupLag:
        """Return the lag of a group, at most CACHE_MS old. Raises the errors of the source."""
        history = self._groups.setdefault(group_id, _History())
        self._groups.move_to_end(group_id)
        if len(self._groups) > GROUPS_MAX:
            self._groups.popitem(last=False)
        async with history.lock:
            if history.queried_ms is None or self._now_ms() - history.queried_ms >= CACHE_MS:
                await self._refresh(group_id, history)
            if history.failure is not None:
                raise history.failure.with_traceback(None)
            assert history.lag is not None
            return history.lag

    async def _refresh(self, group_id: str, history: _History) -> None:
        try:
            history.lag, history.failure = await self._query(group_id, history), None
        except Exception as failure:  # noqa: BLE001  # any exception is raised by the callers
            history.failure = failure
        history.queried_ms = self._now_ms()

    def cached(self, group_id: str, age_ms_max: int | None = None) -> GroupLag | None:
        """Return the lag that was found last, at most `age_ms_max` ago; None when it never was."""
        history = self._groups.get(group_id)
        lag = None if history is None else history.lag
        is_old = lag is not None and age_ms_max is not None and self._wall_ms() - lag.time_ms > age_ms_max
        return None if is_old else lag

    def ms_since_query(self, group_id: str) -> int:
        """Return how long ago the group was read; NEVER_MS when it never was."""
        history = self._groups.get(group_id)
        return NEVER_MS if history is None or history.queried_ms is None else self._now_ms() - history.queried_ms

    async def _query(self, group_id: str, history: _History) -> GroupLag:
        offsets = await self._source.offsets(group_id)
        keys = sorted({*offsets.committed, *offsets.owners})
        ends = await self._source.ends(keys)
        records = {key: _records(offsets.committed.get(key), ends.get(key, UNKNOWN)) for key in keys}
        await self._find_append_times(offsets, records, history)
        now_ms, wall_ms = self._now_ms(), self._wall_ms()
        base = _base(history, now_ms, records)
        partitions = tuple(
            _partition_lag(
                key,
                offsets,
                ends.get(key, UNKNOWN),
                records[key],
                _age_ms(key, records, history, wall_ms),
                trend=_trend(key, records, base, now_ms),
            )
            for key in keys
        )
        return total(group_id, wall_ms, offsets.state, partitions)

    async def _find_append_times(self, offsets: GroupOffsets, records: Mapping[Key, int], history: _History) -> None:
        """Request the times of the first unread records, where a commit has moved since."""
        unread = {key: offsets.committed[key].offset for key, count in records.items() if count > 0}
        times = {key: known for key, known in history.append_times.items() if known[0] == unread.get(key)}
        missing = [key for key in unread if key not in times][:APPEND_TIMES_MAX]
        if missing:
            found = await self._source.append_times({key: unread[key] for key in missing})
            times |= {key: (unread[key], time_ms) for key, time_ms in found.items()}
        history.append_times = times


def _records(committed: Committed | None, end: int) -> int:
    return UNKNOWN if committed is None or end == UNKNOWN else max(end - committed.offset, 0)


def _age_ms(key: Key, records: Mapping[Key, int], history: _History, wall_ms: int) -> int:
    if records[key] <= 0:
        return records[key]  # nothing unread, or unknown
    known = history.append_times.get(key)
    return UNKNOWN if known is None else max(wall_ms - known[1], 0)


def _base(history: _History, now_ms: int, records: dict[Key, int]) -> tuple[int, dict[Key, int]] | None:
    """Return the earlier lag for the trend, TREND_MS_MIN to TREND_MS_MAX old; None while there is none."""
    if history.base is None or now_ms - history.base[0] > TREND_MS_MAX:
        newer = history.next_base
        is_usable = newer is not None and now_ms - newer[0] <= TREND_MS_MAX
        history.base, history.next_base = newer if is_usable else (now_ms, records), (now_ms, records)
    elif history.next_base is None or now_ms - history.next_base[0] >= TREND_MS_MAX // 2:
        history.next_base = now_ms, records
    assert history.base is not None
    return history.base if now_ms - history.base[0] >= TREND_MS_MIN else None


def _trend(key: Key, records: Mapping[Key, int], base: tuple[int, dict[Key, int]] | None, now_ms: int) -> float | None:
    """Return by how many records a second the lag grew; None when that is not known."""
    if base is None or UNKNOWN in (records[key], base[1].get(key, UNKNOWN)):
        return None
    return (records[key] - base[1][key]) * 1_000 / (now_ms - base[0])


def _partition_lag(
    key: Key, offsets: GroupOffsets, end: int, records: int, age_ms: int, *, trend: float | None
) -> PartitionLag:
    committed = offsets.committed.get(key, Committed(UNKNOWN))
    return PartitionLag(
        topic=key[0],
        partition=key[1],
        committed=committed.offset,
        end=end,
        records=records,
        age_ms=age_ms,
        trend=trend or 0.0,
        has_trend=trend is not None,
        commit_ms=committed.commit_ms,
        expires_ms=committed.expires_ms,
        member_id=offsets.owners.get(key, ""),
        error="" if end != UNKNOWN else "the leader does not answer",
    )
