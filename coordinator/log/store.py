"""Where the bytes of one segment are: a file, or memory. Grows at the end, is cut at the end, is read anywhere.

Laws
    An append that fails leaves the store as it was.
    At most `OPEN_FILES_MAX` files are open for reading; a store holds a descriptor of its own only while it is written.
"""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from pathlib import Path
from typing import Final, Protocol

from rota.coordinator.log.contract import StorageFailed

OPEN_FILES_MAX: Final = 64

Buffer = bytes | bytearray | memoryview


class Store(Protocol):
    """The bytes of one segment. Every method raises StorageFailed when the medium refuses."""

    @property
    def size_bytes(self) -> int: ...

    def append(self, data: Buffer) -> None:
        """All of `data` at the end, or none of it."""

    def read(self, position: int, count: int) -> bytes:
        """Up to `count` bytes; fewer at the end."""

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

    def read(self, position: int, count: int) -> bytes:
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

    __slots__ = ("_files", "_limit")

    def __init__(self, limit: int = OPEN_FILES_MAX) -> None:
        self._limit = limit
        self._files: OrderedDict[Path, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: Path) -> int:
        """A descriptor that is good until the next call. Raises OSError."""
        fd = self._files.get(path)
        if fd is not None:
            self._files.move_to_end(path)
            return fd
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._files[path] = fd
        if len(self._files) > self._limit:
            os.close(self._files.popitem(last=False)[1])
        return fd

    def forget(self, path: Path) -> None:
        """The file was renamed, removed or is written now."""
        fd = self._files.pop(path, None)
        if fd is not None:
            os.close(fd)

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])

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
            written = os.pwrite(fd, data, self.size_bytes)
            if written != len(data):
                self._rest(fd, data, written)
        except OSError as error:
            self._undo()
            raise self._failed("write", error) from error
        self.size_bytes += len(data)

    def read(self, position: int, count: int) -> bytes:
        if position >= self.size_bytes:
            return b""
        try:
            fd = self._fd if self._fd >= 0 else self._files.get(self.path)
            return os.pread(fd, min(count, self.size_bytes - position), position)
        except OSError as error:
            raise self._failed("read", error) from error

    def truncate(self, size_bytes: int) -> None:
        if size_bytes >= self.size_bytes:
            return
        try:
            os.ftruncate(self._fd if self._fd >= 0 else self._open(), size_bytes)
        except OSError as error:
            raise self._failed("truncate", error) from error
        self.size_bytes = size_bytes

    def sync(self) -> None:
        """By its own descriptor, so that no other thread can close it; a file that is gone needs no sync."""
        try:
            sync_path(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed("fsync", error) from error

    def seal(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def remove(self) -> None:
        self.seal()
        self._files.forget(self.path)
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise self._failed("remove", error) from error

    def rename(self, path: Path) -> None:
        """Raises StorageFailed. The descriptor for writing stays good."""
        self._files.forget(self.path)
        try:
            os.replace(self.path, path)
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
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return self._fd

    def _rest(self, fd: int, data: Buffer, written: int) -> None:
        with memoryview(data) as view:
            while written < len(data):
                written += os.pwrite(fd, view[written:], self.size_bytes + written)

    def _undo(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # recovery cuts the rest of it, should even this fail
                os.ftruncate(self._fd, self.size_bytes)

    def _failed(self, what: str, error: OSError) -> StorageFailed:
        return StorageFailed(f"cannot {what} {self.path}: {error.strerror or error}")


def sync_path(path: Path) -> None:
    """fsync a file or a folder. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_file(path: Path, data: bytes, *, sync: bool = False) -> None:
    """The whole file or none of it: written beside and renamed. Raises OSError."""
    beside = path.with_name(path.name + ".tmp")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        with memoryview(data) as view:
            written = 0
            while written < len(data):
                written += os.write(fd, view[written:])
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(beside, path)
