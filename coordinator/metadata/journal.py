"""The embedded store's file: a sequence of frames, each of which is read whole or not at all.

    frame:  u32 length of the payload | u32 CRC32C of the payload | payload        (big-endian; a payload is not empty)
    payload:  one entry a line, all entries of one `append`; no entry has a line feed in it

Laws
    J1  `append` returns when its frame is on the medium. A write that fails is cut off again.
    J4  After a failed fsync nothing is written: what is on the medium is unknown until the file is read again.
    J2  One frame at most is not synced. A crash leaves it whole or torn, whichever of its pages reached the medium; a
        torn one is cut at the next opening.
    J3  Damage before the last frame is not a torn write: opening refuses, and says where, rather than forget changes.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from rota.coordinator.log.files import FileSystem, sync, sync_data
from rota.coordinator.metadata.store import StoreFailed
from rota.protocol.crc import crc32c

FRAME_BYTES_MAX = 64 << 20
ENTRY_END = b"\n"  # between two entries of a frame
_HEAD = struct.Struct(">II")
_FIRST_BYTE = re.compile(rb"[\0-\4]")  # of the length of a frame that is no longer than FRAME_BYTES_MAX


def frame(payload: bytes) -> bytes:
    assert 0 < len(payload) <= FRAME_BYTES_MAX
    return _HEAD.pack(len(payload), crc32c(payload)) + payload


def frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(position after the frame, payload) of each whole frame from the start of `data`, up to the first that is not."""
    position = 0
    while (payload := _payload_at(data, position)) is not None:
        position += _HEAD.size + len(payload)
        yield position, payload


def _payload_at(data: bytes, position: int) -> bytes | None:
    if position + _HEAD.size > len(data):
        return None
    length, crc = _HEAD.unpack_from(data, position)
    payload = data[position + _HEAD.size : position + _HEAD.size + length]
    return payload if payload and len(payload) == length and crc32c(payload) == crc else None


def _is_damaged(data: bytes, position: int) -> bool:
    """Return whether a whole frame begins after `position`: then the damage is not a torn last write.

    It searches byte by byte, since the length field of the damaged frame may be wrong.
    """
    return any(_payload_at(data, found.start()) is not None for found in _FIRST_BYTE.finditer(data, position + 1))


class Journal:
    """An open journal, used by one thread at a time.

    `cut_bytes` is how much of a torn write was cut at opening; `failed` is why nothing can be written, or None.
    """

    __slots__ = ("_file", "_path", "cut_bytes", "failed", "size_bytes")

    def __init__(self, path: Path) -> None:
        """Opens or creates it, ready for `append`. Raises StoreFailed."""
        self._path = path
        self.failed: str | None = None
        self.cut_bytes = self.size_bytes = 0
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            FileSystem().sync_path(path.parent)
        except OSError as error:
            raise StoreFailed(f"cannot open {path}: {error}") from error

    def replay(self) -> list[bytes]:
        """The entries in the order of writing; cuts a torn tail. Call it once, before `append`. Raises StoreFailed."""
        try:
            data = self._path.read_bytes()
            found = list(frames(data))
            end = found[-1][0] if found else 0
            if _is_damaged(data, end):
                raise StoreFailed(f"{self._path} is damaged at byte {end}, before its last entry")
            self.cut_bytes, self.size_bytes = len(data) - end, end
            if self.cut_bytes:
                os.ftruncate(self._file, end)
                sync(self._file)
        except OSError as error:
            raise StoreFailed(f"cannot read {self._path}: {error}") from error
        return [entry for _, payload in found for entry in payload.split(ENTRY_END)]

    def append(self, *entries: bytes) -> None:
        """Write one frame with these entries and sync it. Raises StoreFailed.

        The file is then unchanged. After a failed fsync, or a failed write that could not be cut off, every later call
        raises StoreFailed, too.
        """
        if self.failed is not None or self._file < 0:
            raise StoreFailed(self.failed or f"{self._path} is closed")
        data = frame(ENTRY_END.join(entries))
        try:
            _write_at(self._file, data, self.size_bytes)
        except OSError as error:
            self._undo_write(error)
            raise StoreFailed(f"cannot write {self._path}: {error}") from error
        try:
            sync_data(self._file)
        except OSError as error:
            self._fail(error)
            raise StoreFailed(f"cannot sync {self._path}: {error}") from error
        self.size_bytes += len(data)

    def rewrite(self, entries: Iterable[bytes]) -> None:
        """Replace the whole content in one step. Raises StoreFailed: the content is then the old one, or out of use."""
        beside = self._path.with_name(self._path.name + ".new")
        data = b"".join(map(frame, entries))
        try:
            fresh = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                _write_at(fresh, data, 0)
                sync(fresh)
                beside.replace(self._path)
            except OSError:
                os.close(fresh)
                raise
        except OSError as error:
            raise StoreFailed(f"cannot rewrite {self._path}: {error}") from error
        os.close(self._file)
        self._file, self.size_bytes = fresh, len(data)
        self._sync_name()

    def _sync_name(self) -> None:
        """Sync the folder: before that a crash may restore the old file, and lose what is appended to the new one."""
        try:
            FileSystem().sync_path(self._path.parent)
        except OSError as error:
            self.failed = f"{self._path} is out of use since its folder could not be synced: {error}"
            raise StoreFailed(self.failed) from error

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _undo_write(self, cause: OSError) -> None:
        """Remove the bytes of a failed write, so that the next one can follow."""
        try:
            os.ftruncate(self._file, self.size_bytes)
            sync(self._file)
        except OSError:
            self._fail(cause)

    def _fail(self, cause: OSError) -> None:
        """Refuse further writes; remove the bytes that could not be synced if that is possible."""
        self.failed = f"{self._path} is out of use until the broker has read it again, since a write failed: {cause}"
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self.size_bytes)


def _write_at(file: int, data: bytes, position: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, position)
        view, position = view[written:], position + written
