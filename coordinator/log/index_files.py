"""The index files of one segment, and which indexes are in memory.

Law
    Index files are written whole and renamed, so that none is ever half there.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rota.coordinator.log.contract import NotCached, StorageFailed
from rota.coordinator.log.files import FileRange, FileSystem
from rota.coordinator.log.index import TIME_ENTRY_BYTES, BadIndex, OffsetIndex, TimeIndex
from rota.coordinator.log.segment import Indexes, Segment
from rota.coordinator.log.store import Sync
from rota.coordinator.log.transactions import TransactionIndex
from rota.coordinator.log.trash import Trash

OFFSETS: Final = ".index"
TIMES: Final = ".timeindex"
TRANSACTIONS: Final = ".txnindex"
LOADED_INDEXES_MAX: Final = 32


def file_name(offset: int, suffix: str) -> str:
    """Twenty digits and the suffix, as Kafka names its files."""
    return f"{offset:020d}{suffix}"


class LoadedIndexes:
    """The sealed segments whose indexes are in memory; beyond a limit the least recently loaded one is released."""

    __slots__ = ("_limit", "_segments")

    def __init__(self, limit: int = LOADED_INDEXES_MAX) -> None:
        self._limit = limit
        self._segments: OrderedDict[Segment, None] = OrderedDict()

    def add(self, segment: Segment) -> None:
        self._segments[segment] = None
        self._segments.move_to_end(segment)
        if len(self._segments) > self._limit:
            self._segments.popitem(last=False)[0].release()

    def forget(self, segment: Segment) -> None:
        self._segments.pop(segment, None)


class FileIndexes:
    """The index files of one segment: two, and one of aborted transactions if it has any."""

    __slots__ = ("_base", "_folder", "_loaded", "_system", "suffix")

    def __init__(
        self, folder: Path, base_offset: int, loaded: LoadedIndexes, system: FileSystem, suffix: str = ""
    ) -> None:
        self._folder, self._base, self._loaded, self._system = folder, base_offset, loaded, system
        self.suffix = suffix

    @property
    def offsets_path(self) -> Path:
        return self._folder / file_name(self._base, OFFSETS + self.suffix)

    @property
    def times_path(self) -> Path:
        return self._folder / file_name(self._base, TIMES + self.suffix)

    @property
    def transactions_path(self) -> Path:
        return self._folder / file_name(self._base, TRANSACTIONS + self.suffix)

    def load(self, segment: Segment, *, wait: bool = True) -> tuple[OffsetIndex, TimeIndex] | None:
        try:
            offset_bytes, time_bytes = self._read(self.offsets_path, wait), self._read(self.times_path, wait)
            if not segment.active:
                self._loaded.add(segment)
            offsets = OffsetIndex.from_bytes(self._base, offset_bytes, segment.size_bytes)
            times = TimeIndex.from_bytes(self._base, time_bytes)
            if segment.has_lost_entries(offsets, times, wait=wait):
                raise BadIndex("the file is empty")
            return offsets, times
        except (BadIndex, FileNotFoundError):
            if not segment.active:
                self._loaded.add(segment)  # the rebuilt ones will be in memory
            return None
        except OSError as error:
            raise StorageFailed(f"cannot read {self.offsets_path}: {error}") from error

    def _read(self, path: Path, wait: bool, tail_bytes: int | None = None) -> bytes:
        """Return the whole file, or its last `tail_bytes`. Raises OSError, NotCached."""
        fd = self._system.open_read(path)
        try:
            size_bytes = os.fstat(fd).st_size
            count = size_bytes if tail_bytes is None else min(size_bytes, tail_bytes)
            position = size_bytes - count
            if wait or not count or self._system.is_cached(fd, count, position):
                return self._system.pread(fd, count, position)
        finally:
            self._system.close(fd)
        raise NotCached(FileRange(self._system, path, count, position))

    def last_time(self, segment: Segment, *, wait: bool = True) -> tuple[int, int] | None:
        try:
            return TimeIndex.from_bytes(self._base, self._read(self.times_path, wait, TIME_ENTRY_BYTES)).last
        except (BadIndex, OSError):
            return None  # the file is missing, empty or damaged: the caller reads the batches

    def save(self, segment: Segment, offsets: OffsetIndex, times: TimeIndex) -> None:
        if not segment.size_bytes:
            return
        try:
            self._system.write_file(self.offsets_path, offsets.to_bytes())
            self._system.write_file(self.times_path, times.to_bytes())
        except OSError as error:
            raise StorageFailed(f"cannot write {self.offsets_path}: {error}") from error

    def save_aborted(self, segment: Segment) -> None:
        path = self.transactions_path
        try:
            if segment.aborted:
                self._system.write_file(path, segment.aborted.to_bytes())
            elif path.exists():
                self._system.unlink(path)
        except OSError as error:
            raise StorageFailed(f"cannot write {path}: {error}") from error

    def load_aborted(self, segment: Segment) -> None:
        """Load the aborted transactions; a damaged file leaves them to be restored. Raises OSError.

        So does an empty one, which is never written: a loss of power has left its name without its content.
        """
        try:
            segment.aborted = TransactionIndex.from_bytes(self.transactions_path.read_bytes(), self._base)
        except BadIndex:
            segment.forget_aborted()
        if not segment.aborted:
            segment.forget_aborted()

    def begin_sync(self) -> Sync:
        return PathSync(self._system, self._paths)

    def reader(self) -> Indexes:
        return IndexReader(self._folder, self._base, LoadedIndexes(1), self._system, self.suffix)

    @property
    def _paths(self) -> tuple[Path, ...]:
        return self.offsets_path, self.times_path, self.transactions_path

    def rename(self, suffix: str) -> None:
        """Raises OSError."""
        before = self._paths
        self.suffix = suffix
        for old, new in zip(before, self._paths, strict=True):
            if old.exists():
                self._system.replace(old, new)

    def remove(self, trash: Trash) -> None:
        """Raises OSError."""
        for path in self._paths:
            trash.discard(path)

    def share(self, loaded: LoadedIndexes) -> None:
        """Use the loaded indexes of the other logs from now on."""
        self._loaded = loaded


class IndexReader(FileIndexes):
    """The files for another thread than that of the log: reads them, writes nothing."""

    __slots__ = ()

    def save(self, segment: Segment, offsets: OffsetIndex, times: TimeIndex) -> None:
        pass

    def save_aborted(self, segment: Segment) -> None:
        pass


class PathSync:
    """The fsync of files or folders, each opened for it. A missing one is skipped: it was renamed or removed."""

    __slots__ = ("_finished", "_paths", "_system")

    def __init__(
        self, system: FileSystem, paths: tuple[Path, ...], finished: Callable[[], None] = lambda: None
    ) -> None:
        self._system, self._paths, self._finished = system, paths, finished

    def run(self) -> None:
        for path in self._paths:
            try:
                self._system.sync_path(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StorageFailed(f"cannot fsync {path}: {error.strerror or error}") from error

    def finish(self) -> None:
        self._finished()
