"""The medium in memory."""

from __future__ import annotations

from rota.coordinator.log.epochs import LeaderEpochs
from rota.coordinator.log.segment_storage import MemorySegmentStorage, SegmentStorage
from rota.coordinator.log.snapshots import MemorySnapshots
from rota.coordinator.log.store import MemoryStore

from .log_kit import sync


def test_a_swapped_segment_is_durable_and_the_replaced_segments_are_deleted() -> None:
    storage: SegmentStorage = MemorySegmentStorage(MemorySnapshots())
    old, staged = storage.create(5, 100, 0), storage.stage(5, 100)
    old.store.append(b"old")
    staged.store.append(b"new")
    sync(staged.store)
    storage.prepare_swap(staged)
    storage.swap([old], staged)
    assert isinstance(staged.store, MemoryStore)
    assert (old.size_bytes, staged.store.synced_bytes) == (0, 3)


def test_removed_and_discarded_segments_hold_no_memory() -> None:
    storage = MemorySegmentStorage(MemorySnapshots())
    for forget in (storage.remove, storage.discard):
        segment = storage.create(0, 100, 0)
        segment.store.append(b"data")
        forget(segment)
        assert segment.size_bytes == 0
    storage.save_epochs(LeaderEpochs())
    names = storage.begin_sync_names()
    names.run()
    names.finish()
