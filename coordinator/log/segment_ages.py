"""The timestamps of segments, which retention and compaction need, read in another thread.

Laws
    A9  A pass reads no more segments than its decision needs, and the event loop reads none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import lt
from typing import Any, Final, NamedTuple

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.segment import Segment
from rota.protocol.records.errors import CorruptBatch

SEGMENTS_PER_READ_MAX: Final = 64

IsLast = Callable[[int], bool]  # whether, after a segment with that timestamp in ms, no later one is looked at


class Age(NamedTuple):
    """Which timestamp of a segment is meant: how a reader finds it, and where the segment keeps it."""

    find: Callable[[Segment], Any]
    note: Callable[[Segment, Any], None]
    timestamp: Callable[[Any], int]  # of what was found, in ms
    known: Callable[[Segment], Any]  # what was found before, or None


LARGEST: Final = Age(
    lambda segment: segment.largest, Segment.note_largest, lambda found: found[0], lambda segment: segment.known_largest
)
FIRST: Final = Age(
    lambda segment: segment.first_timestamp, Segment.note_first, int, lambda segment: segment.known_first
)


class SegmentAges:
    """One read: the log's thread creates and finishes it, any thread runs it.

    `is_current` says whether the log still has these segments as they were when the read began.
    """

    __slots__ = ("_age", "_error", "_found", "_is_current", "_is_last", "_wanted")

    def __init__(self, age: Age, segments: Iterable[Segment], is_last: IsLast, is_current: Callable[[], bool]) -> None:
        self._age, self._is_last, self._is_current = age, is_last, is_current
        self._wanted = [(segment, segment.index_reader()) for segment in segments]
        self._found: list[tuple[Segment, Any]] = []
        self._error: StorageFailed | None = None

    def run(self) -> None:
        try:
            for segment, reader in self._wanted:
                found = self._age.find(reader)
                self._found.append((segment, found))
                if self._is_last(self._age.timestamp(found)):
                    return
        except CorruptBatch as error:
            self._error = StorageFailed(f"the log is damaged: {error}")
        except StorageFailed as error:
            self._error = error

    def finish(self) -> None:
        """Keep no result and count no failure if segments were removed or cut meanwhile."""
        if not self._is_current():
            return
        for segment, found in self._found:
            self._age.note(segment, found)
        if self._error is not None:
            raise self._error


def unknown_ages(
    segments: Sequence[Segment], config: LogConfig, first_dirty: int, now_ms: int, is_current: Callable[[], bool]
) -> SegmentAges | None:
    """Return the read of the timestamps that retention and compaction need next and that are not known yet."""
    for age, looked_at, is_last in _needs(segments, config, first_dirty, now_ms):
        found = _unknown(age, looked_at, is_last)
        if found:
            return SegmentAges(age, found, is_last, is_current)
    return None


def _needs(
    segments: Sequence[Segment], config: LogConfig, first_dirty: int, now_ms: int
) -> Iterable[tuple[Age, Sequence[Segment], IsLast]]:
    """Yield which timestamps are needed, the segments in their order, and which of them is the last one needed."""
    if config.delete and config.retention_ms is not None:
        yield LARGEST, segments, partial(_is_kept, now_ms - config.retention_ms)
    if not config.compact:
        return
    dirty = [segment for segment in segments[:-1] if segment.next_offset > first_dirty]
    if config.min_compaction_lag_ms > 0:
        yield LARGEST, dirty, partial(lt, now_ms - config.min_compaction_lag_ms)
    if config.max_compaction_lag_ms is not None:
        yield FIRST, dirty, partial(config.is_overdue, now_ms)


def _is_kept(oldest_ms: int, timestamp_ms: int) -> bool:
    return not 0 <= timestamp_ms < oldest_ms


def _unknown(age: Age, segments: Iterable[Segment], is_last: IsLast) -> list[Segment]:
    """Return the first segments whose timestamp is not known, up to the one that decides."""
    found: list[Segment] = []
    for segment in segments:
        if not segment.size_bytes:
            continue
        known = age.known(segment)
        if known is None:
            found.append(segment)
            if len(found) == SEGMENTS_PER_READ_MAX:
                break
        elif is_last(age.timestamp(known)):
            break
    return found
