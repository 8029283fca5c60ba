"""The indexes of a sealed segment whose files are missing or damaged, built again from the batches in another thread.

Law
    A4  A read that does not wait for the disk gets the rebuild as the load of a NotCached; the log's thread takes its
        result. A truncation of the segment, and a read that waits, drop a rebuild: its result is not taken.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from rota.coordinator.log.errors import StorageFailed
from rota.coordinator.log.index import OffsetIndex, TimeIndex
from rota.protocol.records.errors import CorruptBatch

Rebuilt = tuple[OffsetIndex, TimeIndex, tuple[int, int]]  # with `Segment.largest`


class IndexRebuild:
    """One rebuild: `rebuild` reads the batch headers of a whole segment. Any thread may call it, and more than once."""

    __slots__ = ("_error", "_rebuild", "_rebuilt", "_running", "is_done")

    def __init__(self, rebuild: Callable[[], Rebuilt]) -> None:
        self._rebuild: Callable[[], Rebuilt] | None = rebuild  # None when it is done: it holds a file open
        self._running = Lock()
        self._rebuilt: Rebuilt | None = None
        self._error: CorruptBatch | StorageFailed | None = None
        self.is_done = False

    def __call__(self) -> None:
        """Rebuild the indexes; a second call does nothing. A failure is raised by `result`."""
        with self._running:
            if self._rebuild is None:
                return
            try:
                self._rebuilt = self._rebuild()
            except (CorruptBatch, StorageFailed) as error:
                self._error = error.with_traceback(None)  # whose frames have the file, too
            self._rebuild, self.is_done = None, True

    def result(self) -> Rebuilt:
        """Return the indexes. Call it when it `is_done`. Raises CorruptBatch, StorageFailed."""
        if self._error is not None:
            raise self._error
        assert self._rebuilt is not None, "it is not done"
        return self._rebuilt
