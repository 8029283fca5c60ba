"""Offsets that were committed inside of transactions: a producer's wait for its marker, then they count or are dropped.

Laws
    XL6  A pending offset is never returned as committed; the marker of its transaction decides on it.
         A later commit of the same partition wins over a pending one, in whatever order their transactions end: the
         order of the records decides, as in a replay of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rota.coordinator.group.events import OffsetRecord, OffsetValue

OffsetKey = tuple[str, int]  # topic and partition


class PendingOffsets:
    """The pending offsets of one group, by producer id. Each record gets the next number."""

    __slots__ = ("_by_producer", "_last_written", "_number")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[OffsetKey, tuple[int, OffsetValue]]] = {}
        self._last_written: dict[OffsetKey, int] = {}  # of committed offsets, while any offset is pending
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def __iter__(self) -> Iterator[OffsetKey]:
        """Iterate over the partitions with a pending offset; one of several transactions comes several times."""
        for offsets in self._by_producer.values():
            yield from offsets

    def items(self) -> Iterator[tuple[OffsetKey, OffsetValue]]:
        """Iterate over the pending offsets of all transactions."""
        for offsets in self._by_producer.values():
            for key, (_, value) in offsets.items():
                yield key, value

    def is_pending(self, topic: str, partition: int) -> bool:
        """Return whether a transaction that has not ended has committed an offset of this partition."""
        return any((topic, partition) in offsets for offsets in self._by_producer.values())

    def add(self, producer_id: int, records: Iterable[OffsetRecord]) -> None:
        """Add what a producer's transaction has committed."""
        offsets = self._by_producer.setdefault(producer_id, {})
        for record in records:
            self._number += 1
            if record.value is not None:
                offsets[record.topic, record.partition] = self._number, record.value

    def written(self, topic: str, partition: int) -> None:
        """Take in that an offset was committed outside of transactions, or removed. Call it while any is pending."""
        self._number += 1
        self._last_written[topic, partition] = self._number

    def end(self, producer_id: int, *, is_commit: bool) -> dict[OffsetKey, OffsetValue]:
        """End the producer's transaction; return the offsets that are committed now."""
        committed: dict[OffsetKey, OffsetValue] = {}
        for key, (number, value) in self._by_producer.pop(producer_id, {}).items():
            if is_commit and number > self._last_written.get(key, 0):
                self._last_written[key] = number
                committed[key] = value
        if not self._by_producer:
            self._last_written.clear()
        return committed
