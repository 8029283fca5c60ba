"""The largest timestamps of segments, which retention and compaction need, read in another thread.

Laws
    A9  A pass reads no more segments than its decision needs, and the event loop reads none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import lt
from typing import Final

from rota.coordinator.log.contract import LogConfig, StorageFailed
from rota.coordinator.log.segment import Segment
from rota.protocol.records.errors import CorruptBatch

SEGMENTS_PER_READ_MAX: Final = 64

IsLast = Callable[[int], bool]  # whether, after a segment with that timestamp in ms, no later one is looked at


class SegmentAges:
    """One read: the log's thread creates and finishes it, any thread runs it.

    `is_current` says whether the log still has these segments as they were when the read began.
    """

    __slots__ = ("_error", "_found", "_is_current", "_is_last", "_wanted")

    def __init__(self, segments: Iterable[Segment], is_last: IsLast, is_current: Callable[[], bool]) -> None:
        self._wanted = [(segment, segment.index_reader()) for segment in segments]
        self._is_last, self._is_current = is_last, is_current
        self._found: list[tuple[Segment, tuple[int, int]]] = []
        self._error: StorageFailed | None = None

    def run(self) -> None:
        try:
            for segment, reader in self._wanted:
                self._found.append((segment, reader.largest))
                if self._is_last(reader.largest_timestamp):
                    return
        except CorruptBatch as error:
            self._error = StorageFailed(f"the log is damaged: {error}")
        except StorageFailed as error:
            self._error = error

    def finish(self) -> None:
        """Keep no result and count no failure if segments were removed or cut meanwhile."""
        if not self._is_current():
            return
        for segment, largest in self._found:
            segment.note_largest(largest)
        if self._error is not None:
            raise self._error


def unknown_ages(
    segments: Sequence[Segment], config: LogConfig, first_dirty: int, now_ms: int, is_current: Callable[[], bool]
) -> SegmentAges | None:
    """Return the read of the timestamps that retention and compaction need next and that are not known yet."""
    found: list[Segment] = []
    is_last: IsLast = bool
    if config.delete and config.retention_ms is not None:
        oldest_ms = now_ms - config.retention_ms
        found = _unknown(segments, is_last := partial(_is_kept, oldest_ms))
    if not found and config.compact and config.min_compaction_lag_ms > 0:
        newest_ms = now_ms - config.min_compaction_lag_ms
        dirty = [segment for segment in segments[:-1] if segment.next_offset > first_dirty]
        found = _unknown(dirty, is_last := partial(lt, newest_ms))
    return SegmentAges(found, is_last, is_current) if found else None


def _is_kept(oldest_ms: int, timestamp_ms: int) -> bool:
    return not 0 <= timestamp_ms < oldest_ms


def _unknown(segments: Iterable[Segment], is_last: IsLast) -> list[Segment]:
    """Return the first segments whose timestamp is not known, up to the one that decides."""
    found: list[Segment] = []
    for segment in segments:
        if not segment.size_bytes:
            continue
        known = segment.known_largest
        if known is None:
            found.append(segment)
            if len(found) == SEGMENTS_PER_READ_MAX:
                break
        elif is_last(known[0]):
            break
    return found
