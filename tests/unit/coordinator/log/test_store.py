"""Where bytes are kept: a file and memory do the same, a failure leaves nothing behind, descriptors stay few."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.coordinator.faulty_files import FaultyFiles

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.store import UNSYNCED_FILES_MAX, FileStore, MemoryStore, OpenFiles, Store

from .log_kit import sync

Make = Callable[[Path], Store]
MAKES: list[Make] = [lambda path: FileStore(path / "0.log", OpenFiles()), lambda path: MemoryStore()]


@pytest.mark.parametrize("make", MAKES)
def test_grows_is_cut_and_is_read_anywhere(make: Make, tmp_path: Path) -> None:
    store = make(tmp_path)
    assert (store.size_bytes, store.read(0, 10)) == (0, b"")
    store.append(b"abc")
    store.append(memoryview(b"defgh"))
    assert (store.size_bytes, store.read(0, 100), store.read(2, 3), store.read(8, 1)) == (8, b"abcdefgh", b"cde", b"")
    store.truncate(4)
    store.append(bytearray(b"X"))
    sync(store)
    store.seal()
    assert store.read(0, 100) == b"abcdX"
    store.append(b"Y")
    assert store.read(4, 9) == b"XY"
    store.remove()


def test_a_memory_store_counts_synced_bytes() -> None:
    store = MemoryStore()
    store.append(b"abc")
    assert store.synced_bytes == 0
    sync(store)
    store.append(b"d")
    assert store.synced_bytes == 3
    store.truncate(1)
    assert store.synced_bytes == 1


def test_a_sync_says_nothing_of_bytes_that_replace_truncated_ones_meanwhile(tmp_path: Path) -> None:
    """Law A5, A8. The descriptor that wrote a byte stays open until a sync that began after the write."""
    files = OpenFiles()
    store, memory = FileStore(tmp_path / "0.log", files), MemoryStore()
    for each in (store, memory):
        each.append(b"abcd")
        begun = each.begin_sync()
        begun.run()
        each.truncate(2)
        each.append(b"XY")
        begun.finish()
    store.seal()
    assert (files.unsynced, memory.synced_bytes) == (1, 0)
    sync(store)
    assert files.unsynced == 0


def test_a_sync_does_not_cover_what_is_appended_while_it_runs(tmp_path: Path) -> None:
    """Law A5."""
    files = OpenFiles()
    store, memory = FileStore(tmp_path / "0.log", files), MemoryStore()
    for each in (store, memory):
        each.append(b"abcd")
        begun = each.begin_sync()
        each.append(b"ef")
        begun.run()
        begun.finish()
    store.seal()
    assert (files.unsynced, memory.synced_bytes) == (1, 4)


def test_the_file_is_created_at_the_first_append(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "0.log", OpenFiles())
    sync(store)
    store.seal()
    assert not store.path.exists()
    store.append(b"a")
    assert store.path.read_bytes() == b"a"


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "0.log", OpenFiles())
    store.append(b"abc")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, hard))
    try:
        with pytest.raises(StorageFailed, match="cannot write"):
            store.append(b"x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (store.size_bytes, store.path.read_bytes()) == (3, b"abc")
    store.append(b"d")
    assert store.read(0, 9) == b"abcd"


def test_errors_of_the_medium_raise_storage_failed(tmp_path: Path) -> None:
    missing = FileStore(tmp_path / "nowhere" / "0.log", OpenFiles(), size_bytes=5)
    for refused in (
        lambda: missing.append(b"a"),
        lambda: missing.read(0, 1),
        lambda: missing.truncate(1),
        lambda: missing.create(),
        lambda: missing.rename(tmp_path / "1.log"),
    ):
        with pytest.raises(StorageFailed):
            refused()
    missing.remove()


def test_few_descriptors_for_many_files(tmp_path: Path) -> None:
    files = OpenFiles(limit=3)
    stores = [FileStore(tmp_path / f"{number}.log", files) for number in range(10)]
    for number, store in enumerate(stores):
        store.append(b"%d" % number)
        sync(store)
        store.seal()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        assert [store.read(0, 1) for store in stores] == [b"%d" % number for number in range(10)]
    assert len(files) == 3
    assert len(os.listdir("/proc/self/fd")) == before + 3
    files.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_sealed_files_wait_for_their_sync_with_their_descriptors(tmp_path: Path) -> None:
    """Law A8. A seal never syncs; it says when many wait."""
    system, called = FaultyFiles(), list[int]()
    files = OpenFiles(system=system)
    files.on_many_unsynced = lambda: called.append(files.unsynced)
    stores = [FileStore(tmp_path / f"{number}.log", files) for number in range(UNSYNCED_FILES_MAX + 3)]
    for store in stores:
        store.append(b"a")
        store.seal()
    assert called == list(range(UNSYNCED_FILES_MAX // 2, len(stores) + 1))
    assert files.has_many_unsynced
    assert not [call for call in system.calls if call.call == "fsync"]
    for store in stores:
        sync(store)
    assert (files.unsynced, files.has_many_unsynced) == (0, False)
    assert all(store._fd < 0 for store in stores)


def test_a_removed_file_is_not_read_from_an_old_descriptor(tmp_path: Path) -> None:
    files = OpenFiles()
    old = FileStore(tmp_path / "0.log", files)
    old.append(b"old")
    old.seal()
    assert old.read(0, 3) == b"old"
    old.remove()
    new = FileStore(tmp_path / "0.log", files)
    new.append(b"new")
    new.seal()
    assert new.read(0, 3) == b"new"
