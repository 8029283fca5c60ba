"""A truncation: where it cuts a log, and what is read of the records that stay.

Laws
    RF8 `KeptRecords.run` has all reads of a truncation; any thread may run it, and nothing else changes.
        `Removal.run` has all changes of files. A log that is opened again waits for the one of the log before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Lock

from rota.coordinator.log.errors import StorageFailed
from rota.coordinator.log.producers import Producers
from rota.coordinator.log.recovery import restore_producers
from rota.coordinator.log.segment import Segment, SegmentCut
from rota.coordinator.log.snapshots import Snapshots
from rota.protocol.dataclass import dataclass
from rota.protocol.records.errors import CorruptBatch


@dataclass(frozen=True, slots=True)
class Truncation:
    """Removes the records from `offset` on, or all (`is_full`). Then the log starts at `start_offset`.

    While it goes on nothing from `recovery_point` on counts as flushed; `recovery_point_before` is that of before.
    """

    offset: int
    start_offset: int
    recovery_point: int
    recovery_point_before: int
    is_full: bool


class KeptRecords:
    """Reads the last segment that stays, and the state of the producers at its end.

    The log's thread creates it when the truncation has begun, any thread calls `run`. After it `cut` says what stays of
    that segment (None without one), `producers` has their state, and `snapshots` are those that are not damaged.
    """

    __slots__ = ("_offset", "_segments", "cut", "is_read", "producers", "snapshots")

    def __init__(self, offset: int, segments: Sequence[Segment], snapshots: Snapshots) -> None:
        self._offset, self._segments = offset, [segment.index_reader() for segment in segments]
        self.snapshots, self.producers = snapshots.reader(), Producers()
        self.cut: SegmentCut | None = None
        self.is_read = False

    def run(self) -> None:
        """Raises StorageFailed: a segment cannot be read, or is damaged."""
        try:
            end = self._offset
            if self._segments:
                self.cut = self._segments[-1].find_cut(end)
                end = self.cut.next_offset
            restore_producers(self.producers, self.snapshots, self._segments, end)
        except CorruptBatch as error:
            raise StorageFailed(f"the log is damaged: {error}") from error
        self.is_read = True


class Removal:
    """The changes of files by which a truncation ends, in their order. Any thread calls `run`."""

    __slots__ = ("_is_stopped", "_running", "_steps")

    def __init__(self, steps: Iterable[Callable[[], None]]) -> None:
        self._steps, self._running, self._is_stopped = deque(steps), Lock(), False

    def run(self) -> None:
        """Return when all files are changed; wait for a run in another thread. Raises StorageFailed."""
        with self._running:
            while self._steps and not self._is_stopped:
                self._steps[0]()
                self._steps.popleft()

    def stop(self) -> None:
        """Change no further file: a crash could leave them like this."""
        self._is_stopped = True

    def wait_stopped(self) -> None:
        """Stop, and return when no thread runs it."""
        self.stop()
        with self._running:
            pass
