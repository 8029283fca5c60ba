"""The index of a segment's aborted transactions, in the format of Kafka's `.txnindex` files. Pure.

Layout of an entry (big endian, 34 bytes): version i16 = 0, producer id i64, first offset i64, last offset i64, last
stable offset i64. It is in the segment that has the abort marker, which is the transaction's last offset.

Laws
    XL3  A read of [first, end) finds each aborted transaction with records there.
    Entries are in the order of their markers, and their last stable offsets never decrease.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from rota.coordinator.log.index import BadIndex

ENTRY_VERSION: Final = 0
_ENTRY: Final = Struct(">hqqqq")
ENTRY_BYTES: Final = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """The offsets of its first record and of its abort marker, and the last stable offset after that marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one segment; 34 bytes of memory for each."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)

    def __len__(self) -> int:
        return len(self._data) // ENTRY_BYTES

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return map(self._entry, range(len(self)))

    def append(self, aborted: AbortedTransaction) -> None:
        self._data += _ENTRY.pack(ENTRY_VERSION, *aborted)

    def find(self, first: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions with records in [first, end).

        The second result tells whether those are all: then no later segment has another one.
        """
        found: list[AbortedTransaction] = []
        for at in range(bisect_left(range(len(self)), first, key=self._last_offset), len(self)):
            aborted = self._entry(at)
            if aborted.first_offset < end:
                found.append(aborted)
            if aborted.last_stable_offset >= end:
                return found, True
        return found, False

    def truncate(self, offset: int) -> None:
        """Remove the transactions whose marker is at `offset` or later."""
        del self._data[bisect_left(range(len(self)), offset, key=self._last_offset) * ENTRY_BYTES :]

    def to_bytes(self) -> bytes:
        return bytes(self._data)

    @classmethod
    def from_bytes(cls, data: bytes, base_offset: int) -> TransactionIndex:
        """Raises BadIndex."""
        if len(data) % ENTRY_BYTES:
            raise BadIndex(f"{len(data)} bytes are not a whole number of transactions")
        last = base_offset - 1
        for version, _, _, last_offset, _ in _ENTRY.iter_unpack(data):
            if version != ENTRY_VERSION:
                raise BadIndex(f"version {version} is unknown")
            if last_offset <= last:
                raise BadIndex("the transactions are not in order")
            last = last_offset
        return cls(data)

    def _entry(self, at: int) -> AbortedTransaction:
        return AbortedTransaction(*_ENTRY.unpack_from(self._data, at * ENTRY_BYTES)[1:])

    def _last_offset(self, at: int) -> int:
        return self._entry(at).last_offset
