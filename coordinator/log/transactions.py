"""The index of a segment's aborted transactions, in the format of Kafka's `.txnindex` files. Pure.

Layout of an entry (big endian, 34 bytes): version i16 = 0, producer id i64, first offset i64, last offset i64, last
stable offset i64. It is in the segment that has the abort marker, which is the transaction's last offset.

Laws
    XL3  A read of [first, end) finds each aborted transaction with records there.
    Entries are in the order of their markers, and their last stable offsets never decrease.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from rota.coordinator.log.index import BadIndex

ENTRY_VERSION: Final = 0
_ENTRY: Final = Struct(">hqqqq")
ENTRY_BYTES: Final = _ENTRY.size
BLOCK_ENTRIES: Final = 32


class AbortedTransaction(NamedTuple):
    """The offsets of its first record and of its abort marker, and the last stable offset after that marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one segment; 34 bytes of memory for each.

    A search reads the entries of the blocks that have one of its result: `_lowest` is the lowest first offset of each
    block of `BLOCK_ENTRIES`.
    """

    __slots__ = ("_data", "_lowest")

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)
        self._lowest = array("q", map(self._lowest_of, range(-(-len(self) // BLOCK_ENTRIES))))

    def __len__(self) -> int:
        return len(self._data) // ENTRY_BYTES

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return map(self._entry, range(len(self)))

    def append(self, aborted: AbortedTransaction) -> None:
        if len(self) % BLOCK_ENTRIES:
            self._lowest[-1] = min(self._lowest[-1], aborted.first_offset)
        else:
            self._lowest.append(aborted.first_offset)
        self._data += _ENTRY.pack(ENTRY_VERSION, *aborted)

    def find(self, first: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions with records in [first, end).

        The second result is true if those are all: then no later segment has another one.
        """
        at = self._bisect(first, self._last_offset)
        last = max(self._bisect(end, self._last_stable_offset), at)
        is_complete = last < len(self)
        found: list[AbortedTransaction] = []
        stop = min(last + 1, len(self))
        while at < stop:
            block = at // BLOCK_ENTRIES
            block_end = min((block + 1) * BLOCK_ENTRIES, stop)
            if self._lowest[block] < end:
                found += [aborted for aborted in map(self._entry, range(at, block_end)) if aborted.first_offset < end]
            at = block_end
        return found, is_complete

    def truncate(self, offset: int) -> None:
        """Remove the transactions whose marker is at `offset` or later."""
        count = self._bisect(offset, self._last_offset)
        del self._data[count * ENTRY_BYTES :]
        whole = count // BLOCK_ENTRIES
        del self._lowest[whole:]
        if count > whole * BLOCK_ENTRIES:
            self._lowest.append(self._lowest_of(whole))

    def copy(self) -> TransactionIndex:
        """Return a copy that later transactions do not change."""
        copied = TransactionIndex()
        copied._data, copied._lowest = self._data[:], self._lowest[:]
        return copied

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

    def _lowest_of(self, block: int) -> int:
        size = BLOCK_ENTRIES * ENTRY_BYTES
        entries = _ENTRY.iter_unpack(memoryview(self._data)[block * size : (block + 1) * size])
        return min(int(first) for _, _, first, _, _ in entries)

    def _entry(self, at: int) -> AbortedTransaction:
        return AbortedTransaction(*_ENTRY.unpack_from(self._data, at * ENTRY_BYTES)[1:])

    def _bisect(self, offset: int, key: Callable[[int], int]) -> int:
        return bisect_left(range(len(self)), offset, key=key)

    def _last_offset(self, at: int) -> int:
        return self._entry(at).last_offset

    def _last_stable_offset(self, at: int) -> int:
        return self._entry(at).last_stable_offset
