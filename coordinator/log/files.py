"""Every call that the log makes to the operating system's files. Tests inject faults here.

Laws
    Nothing else under `log/` writes, syncs, renames or removes a file.
    `write_file` replaces a file whole: a crash leaves the old content or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROBE_EVERY_BYTES: Final = 64 * 1024  # smaller than the kernel's read-ahead, which fills the page cache in such runs
LOAD_BYTES: Final = 1 << 20  # read at once to bring a range into the page cache
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", None)
_READ: Final = os.O_RDONLY | os.O_CLOEXEC

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes of a file that a read needs. A call brings them into the page cache, in any thread; raises OSError."""

    system: FileSystem
    path: Path
    count: int
    position: int

    def __call__(self) -> None:
        self.system.load(self.path, self.count, self.position)


class FileSystem:
    """The real one. Methods raise OSError. Safe to use from several threads."""

    __slots__ = ()

    def open_read(self, path: Path) -> int:
        """A descriptor for reading; raises FileNotFoundError."""
        return os.open(path, _READ)

    def open_write(self, path: Path) -> int:
        """A descriptor for reading and writing; creates the file if it does not exist."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def duplicate(self, fd: int) -> int:
        """A second descriptor of the same open file: it meets the errors that writes through the first one met."""
        return os.dup(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def pwrite(self, fd: int, data: Buffer, position: int) -> int:
        """Write at `position`; returns how many bytes were written, which may be fewer than requested."""
        return os.pwrite(fd, data, position)

    def pread(self, fd: int, count: int, position: int) -> bytes:
        return os.pread(fd, count, position)

    def ftruncate(self, fd: int, size_bytes: int) -> None:
        os.ftruncate(fd, size_bytes)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def replace(self, old: Path, new: Path) -> None:
        """Rename; an existing `new` is replaced."""
        os.replace(old, new)

    def unlink(self, path: Path) -> None:
        """Remove a file; a missing one is fine."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: Path) -> None:
        shutil.rmtree(path)

    def is_cached(self, fd: int, count: int, position: int) -> bool:
        """Whether a read of that range finds it in the page cache, so that it does not wait for the disk.

        It probes one byte in each PROBE_EVERY_BYTES. True where the platform or the file system cannot tell.
        """
        if _NOWAIT is None:
            return True
        byte, last = bytearray(1), position + count - 1
        try:
            for at in (*range(position, last, PROBE_EVERY_BYTES), last):
                os.preadv(fd, [byte], at, _NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOSYS):
                raise
        return True

    def drop_cached(self, fd: int) -> None:
        """Drop the file from the kernel's page cache, so that the next reads come from the medium."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def load(self, path: Path, count: int, position: int) -> None:
        """Read the range with a descriptor of its own, so that the page cache has it. A missing file is fine."""
        try:
            fd = self.open_read(path)
        except FileNotFoundError:
            return
        try:
            for at in range(position, position + count, LOAD_BYTES):
                self.pread(fd, min(LOAD_BYTES, position + count - at), at)
        finally:
            self.close(fd)

    def sync_path(self, path: Path) -> None:
        """fsync a file or a directory by a fresh descriptor."""
        fd = self.open_read(path)
        try:
            self.fsync(fd)
        finally:
            self.close(fd)

    def write_file(self, path: Path, data: Buffer, *, sync: bool = False) -> None:
        """Write the whole file beside and rename it."""
        beside = path.with_name(path.name + ".tmp")
        fd = self.open_write(beside)
        try:
            self.ftruncate(fd, 0)
            self.write_all(fd, data, 0)
            if sync:
                self.fsync(fd)
        finally:
            self.close(fd)
        self.replace(beside, path)

    def write_all(self, fd: int, data: Buffer, position: int) -> None:
        """Write all of `data`, however many calls it takes."""
        written = self.pwrite(fd, data, position)
        if written == len(data):
            return
        with memoryview(data) as view:
            while written < len(data):
                written += self.pwrite(fd, view[written:], position + written)
