"""Every call that the log makes to the operating system's files. Tests inject faults here.

Laws
    Nothing else under `log/` writes, syncs, renames or removes a file.
    PF3 What is synced survives a loss of power on macOS, too. There fsync leaves it in the cache of the drive, and only
        F_FULLFSYNC empties that, as Java does for Apache Kafka.
    `write_file` replaces a file whole: a crash leaves the old content or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from rota.protocol.dataclass import dataclass

PROBE_EVERY_BYTES: Final = 64 * 1024  # smaller than the kernel's read-ahead, which fills the page cache in such runs
LOAD_BYTES: Final = 1 << 20  # read at once to bring a range into the page cache
COPIED_BYTES_MAX: Final = 32 * 1024  # of a read that is not probed first
# the file system does not know such a call; macOS has two numbers for ENOTSUP
_UNSUPPORTED: Final = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", None)
_READ: Final = os.O_RDONLY | os.O_CLOEXEC
_CACHESTAT: Final = 451  # the number of the system call, Linux 6.5 and later; no wrapper in Python or older C libraries

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


def pages(count: int, position: int) -> int:
    """Return how many pages a range of a file has."""
    return (position + count - 1) // mmap.PAGESIZE - position // mmap.PAGESIZE + 1


def cached_pages(fd: int, count: int, position: int) -> int:
    """Return how many pages of the range the page cache has, by one system call; 0 where the kernel does not say."""
    return _cachestat()(fd, count, position)


@cache
def _cachestat() -> Callable[[int, int, int], int]:
    if sys.platform != "linux":
        return lambda fd, count, position: 0
    import ctypes  # costs several milliseconds, and a broker without reads of many bytes does not need it

    call: Any = ctypes.CDLL(None).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
    call.restype = ctypes.c_long
    of_range, of_counts = ctypes.c_uint64 * 2, ctypes.c_uint64 * 5

    def count_cached(fd: int, count: int, position: int) -> int:
        counts = of_counts()
        return counts[0] if call(_CACHESTAT, fd, of_range(position, count), counts, 0) == 0 else 0

    return count_cached


def sync(fd: int) -> None:
    """Put all that was written to the file on the medium (PF3). Raises OSError."""
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(fd, _FULL_SYNC)
        except OSError as error:
            if error.errno not in (*_UNSUPPORTED, errno.ENOTTY):  # as on a file system of a network
                raise
        else:
            return
    os.fsync(fd)


def sync_data(fd: int) -> None:
    """As `sync`; on Linux without the times of the file."""
    (sync if _FULL_SYNC is not None else getattr(os, "fdatasync", os.fsync))(fd)


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

    def sendfile(self, socket_fd: int, fd: int, count: int, position: int) -> int:
        """Send bytes of a file to a socket; return how many, 0 at the end of the file. BlockingIOError: none now."""
        return os.sendfile(socket_fd, fd, position, count)

    def pread_cached(self, fd: int, count: int, position: int) -> bytes | None:
        """Read, see `pread`; None where that would wait for the disk.

        A read of few bytes is one call, which the kernel ends where a page is not in its cache. A read of many bytes
        is probed first: into memory that has to be cleared and copied it would take longer.
        """
        if count <= COPIED_BYTES_MAX and _NOWAIT is not None:
            buffer = bytearray(count)
            try:
                if os.preadv(fd, [buffer], position, _NOWAIT) == count:
                    return bytes(buffer)
            except BlockingIOError:
                return None
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
        return self.pread(fd, count, position) if self.is_cached(fd, count, position) else None

    def ftruncate(self, fd: int, size_bytes: int) -> None:
        os.ftruncate(fd, size_bytes)

    def fsync(self, fd: int) -> None:
        sync(fd)

    def replace(self, old: Path, new: Path) -> None:
        """Rename; an existing `new` is replaced."""
        os.replace(old, new)

    def unlink(self, path: Path) -> None:
        """Remove a file; a missing one is fine."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: Path) -> None:
        """Remove a folder with all that is in it; of a link to a folder, as on another disk, the link and the content.

        (`shutil` would bring archives and their codecs, 0.6 MB, and refuse such a link.)
        """
        for entry in list(os.scandir(path)):
            if entry.is_dir(follow_symlinks=False):
                self.remove_tree(Path(entry.path))
            else:
                os.unlink(entry.path)
        (os.unlink if path.is_symlink() else os.rmdir)(path)

    def is_cached(self, fd: int, count: int, position: int) -> bool:
        """Whether a read of that range finds it in the page cache, so that it does not wait for the disk.

        It probes one byte in each PROBE_EVERY_BYTES, and only the first and the last byte if the kernel counts all
        pages of the range in its cache: such a page may still be on its way from the disk at the end that is read
        ahead. True where the platform or the file system does not support the probe.
        """
        if _NOWAIT is None:
            return True
        byte, last = bytearray(1), position + count - 1
        has_all_pages = count > PROBE_EVERY_BYTES and cached_pages(fd, count, position) == pages(count, position)
        every_bytes = count if has_all_pages else PROBE_EVERY_BYTES
        try:
            for at in (*range(position, last, every_bytes), last):
                os.preadv(fd, [byte], at, _NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
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
        """fsync a file or a directory by a fresh descriptor; not a directory whose file system knows no such call."""
        fd = self.open_read(path)
        try:
            self.fsync(fd)
        except OSError as error:
            if error.errno not in _UNSUPPORTED or not path.is_dir():
                raise
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
