"""Where the bytes of one segment are: a file, or memory. Grows at the end, is cut at the end, is read anywhere.

Laws
    An append that fails leaves the store as it was.
    A file is synced through the descriptor that wrote it, because the kernel reports a failed write-back once for each
    open file. A file that is written no more keeps that descriptor until it was synced.
    At most `OPEN_FILES_MAX` files are open for reading.
    A8  No method but `read_again` waits for a sync. While `UNSYNCED_FILES_MAX` sealed files wait for theirs, the logs
        roll no segment that has room.
    One thread owns a store; other threads run `Sync.run` and use a `reader`.

The file is longer than 400 lines because the contract and both of its implementations are read together.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from rota.coordinator.log.contract import NotCached, StorageFailed
from rota.coordinator.log.files import Buffer, FileRange, FileSystem
from rota.coordinator.log.trash import Trash

if TYPE_CHECKING:
    from rota.coordinator.log.file_part import FilePart

OPEN_FILES_MAX: Final = 64
PARTS_MAX: Final = 16  # parts of files that are being sent
UNSYNCED_FILES_MAX: Final = 64  # sealed files that keep their descriptor until they are synced
READ_AHEAD_BYTES: Final = 1 << 20  # brought into the page cache for a read that needed less


class Store(Protocol):
    """The bytes of one segment. Every method raises StorageFailed when the medium refuses."""

    @property
    def size_bytes(self) -> int: ...

    def append(self, data: Buffer) -> None:
        """All of `data` at the end, or none of it."""

    def read(self, position: int, count: int, *, wait: bool = True) -> bytes:
        """Up to `count` bytes; fewer at the end. Raises NotCached when `wait` is false and it would take the disk."""

    def part(self, position: int, count: int) -> FilePart | None:
        """Return these bytes, unread, if a file that the page cache has there holds them; None: read them."""

    def truncate(self, size_bytes: int) -> None: ...

    def begin_truncate(self, size_bytes: int) -> Callable[[], None]:
        """As `truncate`, for what reads the store. The call cuts the medium, in any thread, before the next append."""

    def begin_sync(self) -> Sync:
        """Return the sync of all bytes appended so far."""

    def reader(self) -> Store:
        """The same bytes for another thread, which may read them whatever happens to this store."""

    def read_again(self) -> None:
        """Let the next reads come from the medium, not from a cache with bytes that may never have reached it."""

    def seal(self) -> None:
        """No more is appended for now: release the resources for writing once all bytes are synced."""

    def close(self) -> None:
        """Give back every descriptor, synced or not."""

    def remove(self) -> None: ...


class Sync(Protocol):
    """One sync: the owner begins it, any thread runs it, and if that succeeded the owner finishes it."""

    def run(self) -> None:
        """Wait until the medium has everything. Raises StorageFailed."""

    def finish(self) -> None:
        """Note that it has."""


class MemoryStore:
    """A segment in memory. A crash keeps its first `synced_bytes`."""

    __slots__ = ("_data", "synced_bytes", "truncations")

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)
        self.synced_bytes = len(data)
        self.truncations = 0

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    def append(self, data: Buffer) -> None:
        self._data += data

    def read(self, position: int, count: int, *, wait: bool = True) -> bytes:
        with memoryview(self._data) as view:
            return view[position : position + count].tobytes()

    def part(self, position: int, count: int) -> FilePart | None:
        return None

    def truncate(self, size_bytes: int) -> None:
        self._data = self._data[:size_bytes]  # a reader in another thread keeps the old bytes
        self.synced_bytes = min(self.synced_bytes, size_bytes)
        self.truncations += 1

    def begin_truncate(self, size_bytes: int) -> Callable[[], None]:
        self.truncate(size_bytes)
        return do_nothing

    def begin_sync(self) -> Sync:
        return MemorySync(self, len(self._data))

    def reader(self) -> Store:
        reader = MemoryStore()
        reader._data = self._data
        return reader

    def read_again(self) -> None:
        pass

    def seal(self) -> None:
        pass

    def close(self) -> None:
        pass

    def remove(self) -> None:
        self._data = bytearray()
        self.synced_bytes = 0


class MemorySync:
    """A sync of a store in memory, which cannot fail."""

    __slots__ = ("_size_bytes", "_store", "_truncations")

    def __init__(self, store: MemoryStore, size_bytes: int) -> None:
        self._store, self._size_bytes, self._truncations = store, size_bytes, store.truncations

    def run(self) -> None:
        pass

    def finish(self) -> None:
        if self._truncations == (store := self._store).truncations:
            store.synced_bytes = max(store.synced_bytes, self._size_bytes)


class OpenFiles:
    """Descriptors of files that are only read, the least recently used closed first."""

    __slots__ = ("_files", "_limit", "on_many_unsynced", "parts", "sends_parts", "system", "unsynced")

    def __init__(self, limit: int = OPEN_FILES_MAX, system: FileSystem | None = None) -> None:
        self._limit, self.system = limit, FileSystem() if system is None else system
        self._files: OrderedDict[Path, int] = OrderedDict()
        self.parts, self.sends_parts = 0, True  # open parts of files, and whether there may be more, see `file_part`
        self.unsynced = 0  # sealed files that wait for their sync
        self.on_many_unsynced: Callable[[], None] = do_nothing  # called when half as many wait as may

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: Path) -> int:
        """A descriptor that is good until the next call. Raises OSError."""
        fd = self._files.get(path)
        if fd is not None:
            self._files.move_to_end(path)
            return fd
        fd = self.system.open_read(path)
        self._files[path] = fd
        if len(self._files) > self._limit:
            self.system.close(self._files.popitem(last=False)[1])
        return fd

    @property
    def has_many_unsynced(self) -> bool:
        """Whether as many sealed files wait for their sync as may."""
        return self.unsynced >= UNSYNCED_FILES_MAX

    def add_unsynced(self) -> None:
        self.unsynced += 1
        if self.unsynced >= UNSYNCED_FILES_MAX // 2:
            self.on_many_unsynced()

    def forget(self, path: Path) -> None:
        """The file was renamed, removed or is written now."""
        fd = self._files.pop(path, None)
        if fd is not None:
            self.system.close(fd)

    def close(self) -> None:
        while self._files:
            self.system.close(self._files.popitem()[1])

    def __del__(self) -> None:
        self.close()


class FileStore:
    """A segment in a file, which comes into being with `create` or the first append."""

    __slots__ = ("_fd", "_files", "_sealed", "_synced_bytes", "path", "size_bytes", "truncations")

    def __init__(self, path: Path, files: OpenFiles, size_bytes: int = 0) -> None:
        self.path, self._files, self.size_bytes = path, files, size_bytes
        self._fd, self._sealed = -1, False
        self._synced_bytes = size_bytes  # of what the descriptor wrote
        self.truncations = 0  # a sync that began before one says nothing of the bytes after it

    def __del__(self) -> None:
        self.close()

    def append(self, data: Buffer) -> None:
        try:
            fd = self._fd if self._fd >= 0 and not self._sealed else self._open()
            self._files.system.write_all(fd, data, self.size_bytes)
        except OSError as error:
            self._undo()
            raise self._failed("write", error) from error
        self.size_bytes += len(data)

    def read(self, position: int, count: int, *, wait: bool = True) -> bytes:
        if position >= self.size_bytes:
            return b""
        count = min(count, self.size_bytes - position)
        try:
            fd = self._fd if self._fd >= 0 else self._files.get(self.path)
            system = self._files.system
            data = system.pread(fd, count, position) if wait else system.pread_cached(fd, count, position)
            if data is not None:
                return data
        except OSError as error:
            raise self._failed("read", error) from error
        ahead_bytes = min(max(count, READ_AHEAD_BYTES), self.size_bytes - position)
        raise NotCached(FileRange(self._files.system, self.path, ahead_bytes, position))

    def part(self, position: int, count: int) -> FilePart | None:
        files = self._files
        if position + count > self.size_bytes or files.parts >= PARTS_MAX or not files.sends_parts:
            return None
        from rota.coordinator.log.file_part import FilePart  # an idle broker does not need it

        try:
            fd = self._fd if self._fd >= 0 else files.get(self.path)
            return FilePart(files, fd, count, position) if files.system.is_cached(fd, count, position) else None
        except OSError:  # the read that follows meets it, too
            return None

    def truncate(self, size_bytes: int) -> None:
        self.begin_truncate(size_bytes)()

    def begin_truncate(self, size_bytes: int) -> Callable[[], None]:
        if size_bytes >= self.size_bytes:
            return do_nothing
        self.size_bytes = size_bytes
        self._synced_bytes = min(self._synced_bytes, size_bytes)
        self.truncations += 1
        return partial(self._cut, size_bytes)

    def _cut(self, size_bytes: int) -> None:
        """Cut the file, by a descriptor of its own: another thread may open and close those of the store."""
        system = self._files.system
        try:
            fd = system.open_write(self.path)
            try:
                system.ftruncate(fd, size_bytes)
            finally:
                system.close(fd)
        except OSError as error:
            raise self._failed("truncate", error) from error

    def begin_sync(self) -> Sync:
        return FileSync(self, self._files.system, self._fd)

    def synced(self, size_bytes: int) -> None:
        """The first `size_bytes` are on the medium."""
        self._synced_bytes = max(self._synced_bytes, size_bytes)
        if self._sealed and self._synced_bytes == self.size_bytes:
            self.close()

    def reader(self) -> Store:
        """Open the file by its path: a reader of a file that was removed meanwhile raises StorageFailed."""
        return FileStore(self.path, OpenFiles(1, self._files.system), self.size_bytes)

    def read_again(self) -> None:
        """Raises StorageFailed if the kernel still cannot write its cached pages of the file."""
        system = self._files.system
        self._files.forget(self.path)
        try:
            fd = system.open_read(self.path)
            try:
                system.fsync(fd)
                system.drop_cached(fd)
            finally:
                system.close(fd)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed("fsync", error) from error

    def seal(self) -> None:
        if self._fd < 0 or self._sealed:
            return
        if self._synced_bytes == self.size_bytes:
            self.close()
        else:
            self._sealed = True
            self._files.add_unsynced()

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._files.unsynced -= self._sealed
            self._sealed = False
            self._files.system.close(fd)

    def release(self) -> None:
        """Close every descriptor, for writing and for reading."""
        self.close()
        self._files.forget(self.path)

    def share(self, files: OpenFiles) -> None:
        """Use that cache of descriptors from now on."""
        self._files.forget(self.path)
        self._files.unsynced -= self._sealed
        files.unsynced += self._sealed
        self._files = files

    def remove(self) -> None:
        self.release()
        try:
            self._files.system.unlink(self.path)
        except OSError as error:
            raise self._failed("remove", error) from error

    def move_to_trash(self, trash: Trash) -> None:
        """Remove the file by way of the trash. Raises OSError: then the file is still there."""
        trash.discard(self.path)
        self.release()

    def rename(self, path: Path) -> None:
        """Raises StorageFailed. The descriptor for writing stays good."""
        self._files.forget(self.path)
        try:
            self._files.system.replace(self.path, path)
        except OSError as error:
            raise self._failed("rename", error) from error
        self.path = path

    def create(self) -> None:
        """Make the file, empty."""
        try:
            self._files.system.ftruncate(self._open(), 0)
        except OSError as error:
            raise self._failed("create", error) from error

    def _open(self) -> int:
        """The descriptor for writing. A sealed file that is written again is no longer sealed."""
        if self._sealed:
            self._sealed = False
            self._files.unsynced -= 1
        if self._fd < 0:
            self._files.forget(self.path)
            self._fd = self._files.system.open_write(self.path)
        return self._fd

    def _undo(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # recovery cuts the rest of it, should even this fail
                self._files.system.ftruncate(self._fd, self.size_bytes)

    def _failed(self, operation: str, error: OSError) -> StorageFailed:
        return StorageFailed(f"cannot {operation} {self.path}: {error.strerror or error}")


class FileSync:
    """The fsync of a file, through a duplicate of the descriptor that wrote it, so that it is not closed meanwhile."""

    __slots__ = ("_fd", "_size_bytes", "_store", "_system", "_truncations")

    def __init__(self, store: FileStore, system: FileSystem, fd: int) -> None:
        self._store, self._system, self._size_bytes = store, system, store.size_bytes
        self._truncations = store.truncations
        try:
            self._fd = system.duplicate(fd) if fd >= 0 else -1
        except OSError as error:
            raise StorageFailed(f"cannot fsync {store.path}: {error.strerror or error}") from error

    def __del__(self) -> None:
        self._close()

    def run(self) -> None:
        """A deleted file needs no sync."""
        try:
            if self._fd >= 0:
                self._system.fsync(self._fd)
            else:
                self._system.sync_path(self._store.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageFailed(f"cannot fsync {self._store.path}: {error.strerror or error}") from error
        finally:
            self._close()

    def finish(self) -> None:
        if self._truncations == self._store.truncations:
            self._store.synced(self._size_bytes)

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._system.close(fd)


def do_nothing() -> None:
    """The work on files of what has none, or no more to do."""
