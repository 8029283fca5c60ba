"""The committed offsets of a group, by topic and partition, each as the bytes of its record; and the offsets that were
committed inside of transactions, which wait for their marker: then they count or are dropped.

Laws
    G5  What is kept is what is written: a replay of the log gives the same bytes.
    A value is an OffsetCommitValue v4, or v1 with an expiry; those of other versions are converted when they are read.
    XL6  A pending offset is never returned as committed; the marker of its transaction decides on it.
         A later commit of the same partition wins over a pending one, in whatever order their transactions end: the
         order of the records decides, as in a replay of the log.
    XL12 Whether an offset is pending takes the same time whatever the number of open transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from functools import lru_cache
from struct import Struct

from rota.coordinator.group.events import OffsetRecord, OffsetRecords, OffsetValue
from rota.protocol import offsets_records as wire
from rota.protocol.records.offset_columns import is_plain
from rota.protocol.wire import UUID_ZERO

NO_EXPIRY = -1
NO_METADATA = b"\x01"  # an empty string of a flexible version
TAILS_MAX = 64  # commits of one millisecond share the end of their records

_HEAD = Struct(">hqibq").unpack_from  # version, offset, leader epoch, length of no metadata, time of the commit
_TOPIC_ID_AT = 26  # in a value without metadata

OffsetKey = tuple[str, int]  # topic and partition


class Offsets(MutableMapping[OffsetKey, OffsetValue]):
    """A mapping from (topic, partition) to the committed offset. `by_topic` has the bytes; no topic is empty there."""

    __slots__ = ("by_topic",)

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[int, bytes]] = {}

    def __getitem__(self, key: OffsetKey) -> OffsetValue:
        return decode_offset(self.by_topic[key[0]][key[1]])

    def __setitem__(self, key: OffsetKey, value: OffsetValue) -> None:
        self.by_topic.setdefault(key[0], {})[key[1]] = encode_offset(value)

    def __delitem__(self, key: OffsetKey) -> None:
        offsets = self.by_topic[key[0]]
        del offsets[key[1]]
        if not offsets:
            del self.by_topic[key[0]]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and key[1] in self.by_topic.get(key[0], ())

    def __iter__(self) -> Iterator[OffsetKey]:
        for topic, offsets in self.by_topic.items():
            for partition in offsets:
                yield topic, partition

    def __len__(self) -> int:
        return sum(map(len, self.by_topic.values()))

    def __bool__(self) -> bool:
        return bool(self.by_topic)


def each_offset(records: Iterable[OffsetRecord | OffsetRecords]) -> Iterator[OffsetRecord]:
    """Iterate over the offsets one by one."""
    for record in records:
        if type(record) is OffsetRecord:
            yield record
        elif type(record) is OffsetRecords:
            for partition, raw in zip(record.partitions, record.values, strict=True):
                yield OffsetRecord(record.group_id, record.topic, partition, decode_offset(raw))


def encode_offset(value: OffsetValue) -> bytes:
    """Return the bytes of a record: value v4, or v1 with an expiry."""
    if value.expire_ms is not None:
        dated = wire.offset_writer(wire.OFFSET_WITH_EXPIRY_VERSION)
        return dated(value.offset, value.metadata, value.commit_ms, value.expire_ms)
    metadata = wire.metadata_writer()(value.metadata) if value.metadata else NO_METADATA
    head = wire.pack_offset_head(wire.OFFSET_VERSION, value.offset, value.leader_epoch)
    return head + metadata + offset_tail(value.commit_ms, value.topic_id)


@lru_cache(TAILS_MAX)
def offset_tail(commit_ms: int, topic_id: bytes | None) -> bytes:
    """Return the end of value v4, which all offsets of a topic in a commit share."""
    return wire.offset_tail_writer()(commit_ms, topic_id or UUID_ZERO)


def decode_offset(raw: bytes) -> OffsetValue:
    """Return the offset in a value of any version. Raises DecodeError."""
    if is_plain(raw):
        _, offset, epoch, _, commit_ms = _HEAD(raw)
        topic_id = raw[_TOPIC_ID_AT:]
        return OffsetValue(offset, epoch, "", commit_ms, None, topic_id if topic_id.strip(b"\0") else None)
    value = wire.decode_value(wire.OffsetCommitValue, raw)
    return OffsetValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_ms=value.commit_timestamp,
        expire_ms=None if value.expire_timestamp == NO_EXPIRY else value.expire_timestamp,
        topic_id=None if value.topic_id == UUID_ZERO else value.topic_id,
    )


class PendingOffsets:
    """The pending offsets of one group, by producer id. Each record gets the next number."""

    __slots__ = ("_by_producer", "_last_written", "_number", "_transactions")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[OffsetKey, tuple[int, OffsetValue]]] = {}
        self._transactions: dict[OffsetKey, int] = {}  # the number of those with a pending offset of the partition
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
        return (topic, partition) in self._transactions

    def add(self, producer_id: int, records: Iterable[OffsetRecord]) -> None:
        """Add what a producer's transaction has committed."""
        offsets = self._by_producer.setdefault(producer_id, {})
        for record in records:
            self._number += 1
            key = record.topic, record.partition
            if record.value is None:
                continue
            if key not in offsets:
                self._transactions[key] = self._transactions.get(key, 0) + 1
            offsets[key] = self._number, record.value

    def written(self, topic: str, partition: int) -> None:
        """Take in that an offset was committed outside of transactions. Call it while any is pending."""
        self._number += 1
        self._last_written[topic, partition] = self._number

    def removed(self, topic: str, partition: int) -> None:
        """Take in that the offset of a partition was removed, and all that are pending for it with it."""
        if self._transactions.pop((topic, partition), 0):
            for offsets in self._by_producer.values():
                offsets.pop((topic, partition), None)

    def end(self, producer_id: int, *, is_commit: bool) -> dict[OffsetKey, OffsetValue]:
        """End the producer's transaction; return the offsets that are committed now."""
        committed: dict[OffsetKey, OffsetValue] = {}
        for key, (number, value) in self._by_producer.pop(producer_id, {}).items():
            self._transactions[key] -= 1
            if not self._transactions[key]:
                del self._transactions[key]
            if is_commit and number > self._last_written.get(key, 0):
                self._last_written[key] = number
                committed[key] = value
        if not self._by_producer:
            self._last_written.clear()
        return committed
