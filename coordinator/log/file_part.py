"""A part of a segment's file that is not read: it is sent to a socket from the page cache, without a copy.

Laws
    F18 A part has a descriptor of its own, so that its bytes are sent also when the file is renamed or removed
        meanwhile. Of a file that is cut below its end not one byte of another kind is sent: `FileCut` ends the reply.
        After an error of a file the records of its folder are read: a reader can say that the disk has failed.
    N13 At most PARTS_MAX parts of one folder are open, see `OpenFiles`; a record set beyond them is read.
"""

from __future__ import annotations

import errno
from typing import Final, Protocol

# of a file, not of a socket: the disk fails, or the file system has no sendfile
FILE_ERRORS: Final = frozenset({errno.EIO, errno.ESTALE, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


class FileCut(OSError):
    """The file has become shorter than a part of it."""


class System(Protocol):
    """What a part needs of a file system; methods raise OSError."""

    def duplicate(self, fd: int) -> int: ...
    def close(self, fd: int) -> None: ...
    def pread(self, fd: int, count: int, position: int) -> bytes: ...
    def sendfile(self, socket_fd: int, fd: int, count: int, position: int) -> int: ...


class Files(Protocol):
    """The files of one folder, of which `parts` parts are open; more are opened while `sends_parts`."""

    parts: int
    sends_parts: bool

    @property
    def system(self) -> System: ...


class FilePart:
    """`count` bytes from `position` on. What is sent leaves it. Methods raise OSError, and FileCut."""

    __slots__ = ("_fd", "_files", "_left", "_position")

    def __init__(self, files: Files, fd: int, count: int, position: int) -> None:
        """`fd` is a descriptor of the file, which is duplicated."""
        self._fd, self._files, self._left, self._position = -1, files, count, position
        self._fd = files.system.duplicate(fd)
        files.parts += 1

    def __del__(self) -> None:
        self.close()

    def __len__(self) -> int:
        return self._left

    def send(self, socket_fd: int) -> int:
        """Send what the socket takes; return how many bytes. Raises BlockingIOError when it takes none."""
        try:
            sent = self._files.system.sendfile(socket_fd, self._fd, self._left, self._position)
        except OSError as error:
            self._failed(error)
            raise
        if not sent:
            raise FileCut("a log was truncated while its records were sent")
        self._position += sent
        self._left -= sent
        if not self._left:
            self.close()
        return sent

    def read(self) -> bytes:
        """Return the bytes that are not sent."""
        try:
            data = self._files.system.pread(self._fd, self._left, self._position)
        except OSError as error:
            self._failed(error)
            raise
        self.close()
        if len(data) < self._left:
            raise FileCut("a log was truncated before its records were sent")
        return data

    def _failed(self, error: OSError) -> None:
        if error.errno in FILE_ERRORS:
            self._files.sends_parts = False

    def close(self) -> None:
        """Close the descriptor."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._files.parts -= 1
            self._files.system.close(fd)


Records = bytes | FilePart
