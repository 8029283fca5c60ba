"""The indexes of a sealed segment whose files are missing or damaged, built again from the batches in another thread.

Law
    A4  Who does not wait for the disk gets the rebuild as the load of a NotCached. The log's thread takes its result.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from rota.coordinator.log.errors import StorageFailed
from rota.coordinator.log.index import OffsetIndex, TimeIndex
from rota.coordinator.log.segment import Segment
from rota.protocol.records.errors import CorruptBatch


class FileRebuild:
    """One rebuild. Any thread calls it; `save` writes the indexes beside the files that they will replace."""

    __slots__ = ("_error", "_found", "_reader", "_running", "_save", "is_done")

    def __init__(self, reader: Segment, save: Callable[[OffsetIndex, TimeIndex], None]) -> None:
        self._reader, self._save, self._running = reader, save, Lock()
        self._found: tuple[OffsetIndex, TimeIndex, tuple[int, int]] | None = None
        self._error: CorruptBatch | StorageFailed | None = None
        self.is_done = False

    def __call__(self) -> None:
        """Read the batch headers of the whole segment. What fails is raised by `result`."""
        with self._running:
            if self.is_done:
                return
            reader = self._reader
            try:
                reader.rebuild()
                reader.times.append(*reader.largest)
                self._save(reader.offsets, reader.times)
                self._found = reader.offsets, reader.times, reader.largest
            except (CorruptBatch, StorageFailed) as error:
                self._error = error
            self.is_done = True

    def result(self) -> tuple[OffsetIndex, TimeIndex, tuple[int, int]]:
        """Return the indexes and `Segment.largest`. Call it when it `is_done`. Raises CorruptBatch, StorageFailed."""
        if self._error is not None:
            raise self._error
        assert self._found is not None, "it is not done"
        return self._found
