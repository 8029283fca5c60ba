"""The two indexes of a segment, in memory and in Kafka's form for files. Pure.

Laws
    Offsets, positions and timestamps grow from entry to entry.
    The first batch has no entry, so that zeros at the end of a file are room that was never used.
    An index is sparse: its entries are exact, and a batch without one is found by a search from the entry before it.

Files (big endian): `.index` is (relative offset i32, position i32), the last offset of a batch and where it begins;
`.timeindex` is (timestamp i64, relative offset i32), the largest timestamp so far and the last offset of its batch.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import islice
from operator import lt
from struct import Struct
from typing import Final

OFFSET_ENTRY_BYTES: Final = 8
TIME_ENTRY_BYTES: Final = 12
_TIME: Final = Struct(">qi")
_SWAP: Final = sys.byteorder == "little"


class BadIndex(ValueError):
    """The file's entries are not in order, or point outside the segment: it has to be rebuilt."""


class OffsetIndex:
    """Maps an offset to a position at or before its batch."""

    __slots__ = ("_offsets", "_positions", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last(self) -> tuple[int, int] | None:
        """(last offset, position) of the last indexed batch."""
        if not self._offsets:
            return None
        return self.base_offset + self._offsets[-1], self._positions[-1]

    def append(self, last_offset: int, position: int) -> None:
        self._offsets.append(last_offset - self.base_offset)
        self._positions.append(position)

    def floor(self, offset: int) -> int:
        """Return the position to search from: the batch there ends at or before `offset`, or is the first."""
        at = bisect_right(self._offsets, offset - self.base_offset)
        return self._positions[at - 1] if at else 0

    def ceiling(self, position: int) -> int | None:
        """Return the last offset of the first indexed batch after `position`; None without one."""
        at = bisect_right(self._positions, position)
        return self.base_offset + self._offsets[at] if at < len(self) else None

    def truncate(self, offset: int) -> None:
        """Forget the batches that end at `offset` or later."""
        keep = bisect_left(self._offsets, offset - self.base_offset)
        del self._offsets[keep:], self._positions[keep:]

    def copy(self) -> OffsetIndex:
        """Return a copy that later batches do not change."""
        copied = OffsetIndex(self.base_offset)
        copied._offsets, copied._positions = self._offsets[:], self._positions[:]
        return copied

    def to_bytes(self) -> bytes:
        pairs = array("i", bytes(OFFSET_ENTRY_BYTES * len(self)))
        pairs[0::2], pairs[1::2] = self._offsets, self._positions
        if _SWAP:
            pairs.byteswap()
        return pairs.tobytes()

    @classmethod
    def from_bytes(cls, base_offset: int, data: bytes, log_bytes: int) -> OffsetIndex:
        """Return the index of a segment of `log_bytes`. Raises BadIndex."""
        pairs = array("i", _used(data, OFFSET_ENTRY_BYTES))
        if _SWAP:
            pairs.byteswap()
        index = cls(base_offset)
        index._offsets, index._positions = offsets, positions = pairs[0::2], pairs[1::2]
        if not (_grows(offsets) and _grows(positions)):
            raise BadIndex("the entries are not in order")
        if offsets and not (offsets[0] >= 0 < positions[0] and positions[-1] < log_bytes):
            raise BadIndex("an entry points outside the segment")
        return index


class TimeIndex:
    """Maps a timestamp (ms) to an offset at or before the first record that is as new."""

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> tuple[int, int] | None:
        """(largest timestamp, last offset of its batch)."""
        if not self._timestamps:
            return None
        return self._timestamps[-1], self.base_offset + self._offsets[-1]

    def append(self, timestamp: int, last_offset: int) -> None:
        """Add an entry if `timestamp` is larger than all before; -1 is no timestamp."""
        if timestamp > (self._timestamps[-1] if self._timestamps else -1):
            self._timestamps.append(timestamp)
            self._offsets.append(last_offset - self.base_offset)

    def floor(self, timestamp: int) -> int:
        """Return an offset such that all records before it are older than `timestamp`."""
        at = bisect_left(self._timestamps, timestamp)
        return self.base_offset + (self._offsets[at - 1] if at else 0)

    def truncate(self, offset: int) -> None:
        """Forget the batches that end at `offset` or later."""
        keep = bisect_left(self._offsets, offset - self.base_offset)
        del self._timestamps[keep:], self._offsets[keep:]

    def copy(self) -> TimeIndex:
        """Return a copy that later batches do not change."""
        copied = TimeIndex(self.base_offset)
        copied._timestamps, copied._offsets = self._timestamps[:], self._offsets[:]
        return copied

    def to_bytes(self) -> bytes:
        return b"".join(map(_TIME.pack, self._timestamps, self._offsets))

    @classmethod
    def from_bytes(cls, base_offset: int, data: bytes) -> TimeIndex:
        """Raises BadIndex."""
        index = cls(base_offset)
        for timestamp, offset in _TIME.iter_unpack(_used(data, TIME_ENTRY_BYTES)):
            index._timestamps.append(timestamp)
            index._offsets.append(offset)
        if not (_grows(index._timestamps) and _grows(index._offsets)):
            raise BadIndex("the entries are not in order")
        if index._offsets and index._offsets[0] < 0:
            raise BadIndex("an entry points outside the segment")
        return index


def _used(data: bytes, entry_bytes: int) -> bytes:
    """Return the data without the zeros at the end of a preallocated file. Raises BadIndex."""
    if len(data) % entry_bytes:
        raise BadIndex(f"{len(data)} bytes are not a whole number of entries")
    used = len(data.rstrip(b"\0"))
    return data[: used + -used % entry_bytes]


def _grows(numbers: array[int]) -> bool:
    return all(map(lt, numbers, islice(numbers, 1, None)))
