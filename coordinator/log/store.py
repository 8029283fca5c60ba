"""Where the bytes of one segment are: a file, or memory. Grows at the end, is cut at the end, is read anywhere.

Laws
    An append that fails leaves the store as it was.
    At most `OPEN_FILES_MAX` files are open for reading; a store holds a descriptor of its own only while it is written.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from rota.coordinator.log.contract import NotCached, StorageFailed
from rota.coordinator.log.files import Buffer, FileSystem

OPEN_FILES_MAX: Final = 64
READ_AHEAD_BYTES: Final = 1 << 20  # brought into the page cache for a read that needed less


class Store(Protocol):
    """The bytes of one segment. Every method raises StorageFailed when the medium refuses."""

    @property
    def size_bytes(self) -> int: ...

    def append(self, data: Buffer) -> None:
        """All of `data` at the end, or none of it."""

    def read(self, position: int, count: int, *, wait: bool = True) -> bytes:
        """Up to `count` bytes; fewer at the end. Raises NotCached when `wait` is false and it would take the disk."""

    def truncate(self, size_bytes: int) -> None: ...

    def sync(self) -> None:
        """What was appended is on the medium when this returns. May run in another thread than the appends."""

    def seal(self) -> None:
        """Nothing more is appended for now: give back what writing needs."""

    def remove(self) -> None: ...


class MemoryStore:
    """A segment in memory. `synced_bytes` is what a crash leaves."""

    __slots__ = ("_data", "synced_bytes")

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)
        self.synced_bytes = len(data)

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    def append(self, data: Buffer) -> None:
        self._data += data

    def read(self, position: int, count: int, *, wait: bool = True) -> bytes:
        with memoryview(self._data) as view:
            return view[position : position + count].tobytes()

    def truncate(self, size_bytes: int) -> None:
        del self._data[size_bytes:]
        self.synced_bytes = min(self.synced_bytes, size_bytes)

    def sync(self) -> None:
        self.synced_bytes = len(self._data)

    def seal(self) -> None:
        pass

    def remove(self) -> None:
        self._data.clear()
        self.synced_bytes = 0


class OpenFiles:
    """Descriptors of files that are only read, the least recently used closed first."""

    __slots__ = ("_files", "_limit", "system")

    def __init__(self, limit: int = OPEN_FILES_MAX, system: FileSystem | None = None) -> None:
        self._limit, self.system = limit, FileSystem() if system is None else system
        self._files: OrderedDict[Path, int] = OrderedDict()

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
    """A segment in a file, which comes into being with the first append."""

    __slots__ = ("_fd", "_files", "path", "size_bytes")

    def __init__(self, path: Path, files: OpenFiles, size_bytes: int = 0) -> None:
        self.path, self._files, self.size_bytes = path, files, size_bytes
        self._fd = -1

    def __del__(self) -> None:
        self.seal()

    def append(self, data: Buffer) -> None:
        try:
            fd = self._fd if self._fd >= 0 else self._open()
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
            if wait or self._files.system.is_cached(fd, count, position):
                return self._files.system.pread(fd, count, position)
        except OSError as error:
            raise self._failed("read", error) from error
        ahead_bytes = min(max(count, READ_AHEAD_BYTES), self.size_bytes - position)
        raise NotCached(partial(self._files.system.load, self.path, ahead_bytes, position))

    def truncate(self, size_bytes: int) -> None:
        if size_bytes >= self.size_bytes:
            return
        try:
            self._files.system.ftruncate(self._fd if self._fd >= 0 else self._open(), size_bytes)
        except OSError as error:
            raise self._failed("truncate", error) from error
        self.size_bytes = size_bytes

    def sync(self) -> None:
        """By its own descriptor, so that no other thread can close it; a file that is gone needs no sync."""
        try:
            self._files.system.sync_path(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed("fsync", error) from error

    def seal(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._files.system.close(fd)

    def remove(self) -> None:
        self.seal()
        self._files.forget(self.path)
        try:
            self._files.system.unlink(self.path)
        except OSError as error:
            raise self._failed("remove", error) from error

    def rename(self, path: Path) -> None:
        """Raises StorageFailed. The descriptor for writing stays good."""
        self._files.forget(self.path)
        try:
            self._files.system.replace(self.path, path)
        except OSError as error:
            raise self._failed("rename", error) from error
        self.path = path

    def create(self) -> None:
        """Have the file, even if it stays empty."""
        if self._fd < 0:
            try:
                self._open()
            except OSError as error:
                raise self._failed("create", error) from error

    def _open(self) -> int:
        self._files.forget(self.path)
        self._fd = self._files.system.open_write(self.path)
        return self._fd

    def _undo(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # recovery cuts the rest of it, should even this fail
                self._files.system.ftruncate(self._fd, self.size_bytes)

    def _failed(self, what: str, error: OSError) -> StorageFailed:
        return StorageFailed(f"cannot {what} {self.path}: {error.strerror or error}")
