"""The files of one partition: which there are, how they are named, how one set replaces another.

Laws
    A `.cleaned`, `.deleted` or `.tmp` file never counts. A `.log.swap` file counts from the moment it has that name:
    opening finishes what the stop interrupted.
    Files that go are renamed to `.deleted` at once and unlinked later: no caller waits for the unlink of a large file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.epochs import EPOCHS_FILE, BadCheckpoint, LeaderEpochs
from rota.coordinator.log.files import FileSystem
from rota.coordinator.log.index_files import (
    OFFSETS,
    TIMES,
    TRANSACTIONS,
    FileIndexes,
    LoadedIndexes,
    PathSync,
    file_name,
)
from rota.coordinator.log.segment import Segment
from rota.coordinator.log.segment_storage import NoSync
from rota.coordinator.log.snapshots import Snapshots
from rota.coordinator.log.store import FileStore, OpenFiles, Sync, do_nothing
from rota.coordinator.log.trash import DELETED, Trash

LOG: Final = ".log"
SNAPSHOT: Final = ".snapshot"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
UNFINISHED: Final = (CLEANED, DELETED, ".tmp")


class FileSnapshots:
    """`.snapshot` files. The names are read once. `discard` removes a file, or has it removed; it raises OSError."""

    __slots__ = ("_discard", "_folder", "_offsets", "_system")

    def __init__(self, folder: Path, offsets: list[int], system: FileSystem, discard: Callable[[Path], None]) -> None:
        self._folder, self._offsets, self._system = folder, sorted(offsets), system
        self._discard = discard

    def offsets(self) -> list[int]:
        return list(self._offsets)

    def load(self, offset: int) -> bytes:
        path = self._folder / file_name(offset, SNAPSHOT)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""  # reads as a bad one
        except OSError as error:
            raise StorageFailed(f"cannot read {path}: {error}") from error

    def save(self, offset: int, data: bytes) -> None:
        path = self._folder / file_name(offset, SNAPSHOT)
        try:
            self._system.write_file(path, data)
        except OSError as error:
            raise StorageFailed(f"cannot write {path}: {error}") from error
        self._offsets = sorted({*self._offsets, offset})

    def remove(self, offset: int) -> None:
        self.begin_remove(offset)()

    def begin_remove(self, offset: int) -> Callable[[], None]:
        if offset in self._offsets:
            self._offsets.remove(offset)
        path = self._folder / file_name(offset, SNAPSHOT)

        def remove() -> None:
            try:
                self._discard(path)
            except OSError as error:
                raise StorageFailed(f"cannot remove {path}: {error}") from error

        return remove

    def reader(self) -> Snapshots:
        return FileSnapshots(self._folder, self._offsets, self._system, self._system.unlink)


class Folder:
    """The segment storage of a log on disk. Call `open` first. Methods raise StorageFailed."""

    __slots__ = ("_files", "_loaded", "_names_made", "_names_synced", "_system", "path", "snapshots", "trash")

    def __init__(self, path: Path, files: OpenFiles, loaded: LoadedIndexes, trash: Trash | None = None) -> None:
        self.path, self._files, self._loaded = path, files, loaded
        self._system = files.system
        self.trash = Trash(files.system) if trash is None else trash
        self.snapshots: Snapshots = FileSnapshots(path, [], files.system, self._discard)
        self._names_made, self._names_synced = 1, 0  # a process that crashed may not have synced the names it made

    @property
    def has_many_unsynced(self) -> bool:
        return self._files.has_many_unsynced

    def open(self, index_interval_bytes: int) -> list[Segment]:
        """Return the existing segments, unchecked; the last one is active. Creates the folder if it is missing."""
        try:
            self.path.mkdir(exist_ok=True)
            names = set(os.listdir(self.path))
            if any(name.endswith((*UNFINISHED, SWAP)) for name in names):
                self._complete_swaps(names)
                names = set(os.listdir(self.path))
            sizes = {int(name[:20]): self._size(name) for name in names if _is(name, LOG)}
        except OSError as error:
            raise StorageFailed(f"cannot open {self.path}: {error}") from error
        offsets = [int(name[:20]) for name in names if _is(name, SNAPSHOT)]
        self.snapshots = FileSnapshots(self.path, offsets, self._system, self._discard)
        segments = [self._segment(base, index_interval_bytes, sizes[base]) for base in sorted(sizes)]
        self._load_aborted(segments, names)
        return self._chain(segments)

    def _load_aborted(self, segments: list[Segment], names: set[str]) -> None:
        try:
            for segment in segments:
                if file_name(segment.base_offset, TRANSACTIONS) in names:
                    _parts(segment)[1].load_aborted(segment)
        except OSError as error:
            raise StorageFailed(f"cannot open {self.path}: {error}") from error

    def load_epochs(self) -> LeaderEpochs:
        """Return the epochs; empty without a file or with a damaged one: recovery rebuilds them from the batches."""
        try:
            return LeaderEpochs.from_text((self.path / EPOCHS_FILE).read_text(errors="replace"))
        except (FileNotFoundError, BadCheckpoint):
            return LeaderEpochs()
        except OSError as error:
            raise StorageFailed(f"cannot read {self.path / EPOCHS_FILE}: {error}") from error

    def create(self, base_offset: int, index_interval_bytes: int, now_ms: int) -> Segment:
        """Create a segment. Past offset 0 its file is created too: the file's name keeps the log's end."""
        segment, create = self.begin_create(base_offset, index_interval_bytes, now_ms)
        create()
        return segment

    def begin_create(
        self, base_offset: int, index_interval_bytes: int, now_ms: int
    ) -> tuple[Segment, Callable[[], None]]:
        self._names_made += 1
        segment = self._segment(base_offset, index_interval_bytes, 0, now_ms)
        return segment, _parts(segment)[0].create if base_offset else do_nothing

    def stage(self, base_offset: int, index_interval_bytes: int) -> Segment:
        """Return a segment for another thread to write; it shares nothing with the other segments until the swap."""
        store = FileStore(self.path / file_name(base_offset, LOG + CLEANED), OpenFiles(1, self._system))
        store.create()
        indexes = FileIndexes(self.path, base_offset, LoadedIndexes(1), self._system, CLEANED)
        return Segment(base_offset, store, indexes, index_interval_bytes=index_interval_bytes)

    def prepare_swap(self, staged: Segment) -> None:
        store, indexes = _parts(staged)
        self._names_made += 1
        try:
            indexes.rename(SWAP)
            store.rename(self.path / file_name(staged.base_offset, LOG + SWAP))
        except OSError as error:
            raise StorageFailed(f"cannot swap a compacted segment in at {self.path}: {error}") from error

    def swap(self, old: list[Segment], staged: Segment) -> None:
        store, indexes = _parts(staged)
        self._names_made += 1
        try:
            for segment in reversed(old):
                self.remove(segment)
            indexes.rename("")
            store.rename(self.path / file_name(staged.base_offset, LOG))
        except OSError as error:
            raise StorageFailed(f"cannot swap a compacted segment in at {self.path}: {error}") from error
        store.share(self._files)
        indexes.share(self._loaded)

    def discard(self, staged: Segment) -> None:
        self.remove(staged)

    def remove(self, segment: Segment) -> None:
        """Remove a segment, its indexes first: they can be rebuilt from a segment."""
        store, indexes = _parts(segment)
        self._loaded.forget(segment)
        self._names_made += 1  # what follows may take its offsets: a power loss must not bring it back
        try:
            indexes.remove(self.trash)
            store.move_to_trash(self.trash)
        except OSError as error:
            raise StorageFailed(f"cannot remove {store.path}: {error.strerror or error}") from error

    def begin_remove(self, segment: Segment) -> Callable[[], None]:
        store, indexes = _parts(segment)
        self._loaded.forget(segment)
        store.release()

        def remove() -> None:
            try:
                indexes.remove(self.trash)
                self.trash.discard(store.path)
            except OSError as error:
                raise StorageFailed(f"cannot remove {store.path}: {error.strerror or error}") from error

        return remove

    def note_names(self) -> None:
        self._names_made += 1

    def _discard(self, path: Path) -> None:
        self.trash.discard(path)

    def release(self, segment: Segment) -> None:
        """Close the files of a segment and drop its indexes."""
        store, _ = _parts(segment)
        self._loaded.forget(segment)
        store.release()

    def share(self, segments: list[Segment], files: OpenFiles, loaded: LoadedIndexes, trash: Trash) -> None:
        """Use the caches of the other logs from now on; the log was opened with its own in another thread."""
        for segment in segments:
            store, indexes = _parts(segment)
            self._loaded.forget(segment)
            segment.release()
            store.share(files)
            indexes.share(loaded)
        self._files.close()
        self.trash.move_to(trash)
        self._files, self._loaded, self.trash = files, loaded, trash

    def save_epochs(self, epochs: LeaderEpochs) -> None:
        self.begin_save_epochs(epochs)()

    def begin_save_epochs(self, epochs: LeaderEpochs) -> Callable[[], None]:
        data = epochs.to_text().encode()

        def save() -> None:
            try:
                self._system.write_file(self.path / EPOCHS_FILE, data)
            except OSError as error:
                raise StorageFailed(f"cannot write {self.path / EPOCHS_FILE}: {error}") from error

        return save

    def remove_tree(self) -> None:
        """Remove the folder and its content. Raises OSError."""
        self._system.remove_tree(self.path)

    def begin_sync_names(self) -> Sync:
        made = self._names_made
        if made == self._names_synced:
            return NoSync()

        def finished() -> None:
            self._names_synced = max(self._names_synced, made)

        return PathSync(self._system, (self.path, self.path.parent), finished)

    def _segment(self, base_offset: int, index_interval_bytes: int, size_bytes: int, now_ms: int = -1) -> Segment:
        store = FileStore(self.path / file_name(base_offset, LOG), self._files, size_bytes)
        indexes = FileIndexes(self.path, base_offset, self._loaded, self._system)
        return Segment(base_offset, store, indexes, index_interval_bytes=index_interval_bytes, created_ms=now_ms)

    def _chain(self, segments: list[Segment]) -> list[Segment]:
        for segment, following in pairwise(segments):
            segment.active = False
            segment.next_offset = following.base_offset
        return segments

    def _size(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def _complete_swaps(self, names: set[str]) -> None:
        """Remove unfinished files and complete interrupted swaps. Raises OSError, StorageFailed."""
        for name in names:
            if name.endswith(UNFINISHED):
                self._system.unlink(self.path / name)
        for name in sorted(names):
            if _is(name, LOG + SWAP):
                self._complete_swap(int(name[:20]), names)
        for name in names:
            if name.endswith(SWAP):
                self._system.unlink(self.path / name)

    def _complete_swap(self, base_offset: int, names: set[str]) -> None:
        swap = self.path / file_name(base_offset, LOG + SWAP)
        store = FileStore(swap, self._files, swap.stat().st_size)
        end = Segment(base_offset, store, None, index_interval_bytes=1 << 30)
        end.rebuild()
        for name in names:
            if _is(name, LOG) and base_offset <= int(name[:20]) < end.next_offset:
                for suffix in (LOG, OFFSETS, TIMES, TRANSACTIONS):
                    self._system.unlink(self.path / (name[:20] + suffix))
        for suffix in (OFFSETS, TIMES, TRANSACTIONS, LOG):
            if file_name(base_offset, suffix + SWAP) in names:
                swapped = self.path / file_name(base_offset, suffix + SWAP)
                self._system.replace(swapped, self.path / file_name(base_offset, suffix))
        self._files.forget(swap)


def _is(name: str, suffix: str) -> bool:
    return len(name) == 20 + len(suffix) and name.endswith(suffix) and name[:20].isdecimal()


def _parts(segment: Segment) -> tuple[FileStore, FileIndexes]:
    store, indexes = segment.store, segment.indexes
    assert isinstance(store, FileStore)
    assert isinstance(indexes, FileIndexes)
    return store, indexes
