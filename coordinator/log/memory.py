"""A log in memory: the same log, without files. `rota serve --memory` runs on it.

Laws
    L2  `crash` keeps the flushed records, and of the others as many as requested, cut at a batch boundary.
"""

from __future__ import annotations

from rota.coordinator.log.contract import LogConfig
from rota.coordinator.log.epochs import LeaderEpochs
from rota.coordinator.log.producers import Producers
from rota.coordinator.log.recovery import recover, restore_producers
from rota.coordinator.log.segment import Segment
from rota.coordinator.log.segment_storage import MemorySegmentStorage, SegmentStorage
from rota.coordinator.log.segmented import SegmentedLog
from rota.coordinator.log.snapshots import MemorySnapshots
from rota.coordinator.log.store import MemoryStore


class MemoryLog(SegmentedLog):
    """One partition in memory."""

    __slots__ = ()

    def __init__(self, config: LogConfig | None = None, *, now_ms: int = -1) -> None:
        config = config if config is not None else LogConfig()
        storage = MemorySegmentStorage(MemorySnapshots())
        first = storage.create(0, config.index_interval_bytes, now_ms)
        super().__init__(storage, config, [first], epochs=LeaderEpochs(), producers=Producers())

    def crash(self, keep_bytes: int = 0) -> None:
        """Lose the unsynced tail but for its first `keep_bytes` (a torn write), and recover."""
        epochs, next_offset = LeaderEpochs(), 0
        kept: list[Segment] = []
        for segment in self._segments:
            whole, keep_bytes = _tear(segment, keep_bytes)
            kept.append(segment)
            if recover(segment, next_offset, epochs) or not whole:
                break
            next_offset = segment.next_offset
        for segment in self._segments[len(kept) :]:
            self._storage.remove(segment)
        self._begin_again(self._storage, kept, epochs)

    def close(self) -> None:
        """Keeps everything, so that the same object may be used again."""
        self.flush()

    def _begin_again(self, storage: SegmentStorage, kept: list[Segment], epochs: LeaderEpochs) -> None:
        for segment in kept[:-1]:
            segment.seal()
        end = kept[-1].next_offset
        for offset in storage.snapshots.offsets():
            if offset > end:
                storage.snapshots.remove(offset)
        producers = Producers()
        restore_producers(producers, storage.snapshots, kept, end)
        epochs.begin(min(self._start, end))
        super().__init__(
            storage,
            self.config,
            kept,
            epochs=epochs,
            producers=producers,
            start_offset=self._start,
            recovery_point=end,
            cleaned_until=self._cleaned_until,
        )


def _tear(segment: Segment, keep_bytes: int) -> tuple[bool, int]:
    """Return whether no record of it was lost, and the bytes to keep."""
    store = segment.store
    assert isinstance(store, MemoryStore)
    unsynced_bytes = store.size_bytes - store.synced_bytes
    kept_bytes = min(unsynced_bytes, keep_bytes)
    store.truncate(store.synced_bytes + kept_bytes)
    store.synced_bytes = store.size_bytes
    return kept_bytes == unsynced_bytes, keep_bytes - kept_bytes
