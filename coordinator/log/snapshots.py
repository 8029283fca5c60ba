"""Producer state as a file, in Kafka's own form, so that idempotent producers survive a restart.

Layout (big endian): version i16 = 1, CRC32C u32 of all that follows, count i32, and for each entry: producer id i64,
epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64, coordinator epoch i32, first offset of
the open transaction i64.

Kafka writes one entry for each producer, with its last batch. Here each batch that is remembered has an entry, the last
one last: of several entries for one producer Kafka takes the last. With one alone, a broker that dies right after a
segment rolled would refuse the retry of any earlier batch in flight as out of order.

Laws
    I3  What is read is what was written: every batch that duplicates are recognized by.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final, Protocol

from rota.coordinator.log.producer import ENTRY, BatchMetadata, Producer
from rota.coordinator.log.store import do_nothing
from rota.protocol.crc import crc32c

SNAPSHOT_VERSION: Final = 1
_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")


class BadSnapshot(ValueError):
    """The file is damaged: use an older one, or rebuild the state from the log."""


class Snapshots(Protocol):
    """The producer states of one log by the offset they go up to. Methods raise StorageFailed."""

    def offsets(self) -> list[int]:
        """Return the offsets in ascending order."""

    def load(self, offset: int) -> bytes: ...

    def save(self, offset: int, data: bytes) -> None: ...

    def remove(self, offset: int) -> None: ...

    def begin_remove(self, offset: int) -> Callable[[], None]:
        """As `remove`. The call changes the files, in any thread."""

    def reader(self) -> Snapshots:
        """Return a copy for another thread, which may load and remove."""


class MemorySnapshots:
    """Snapshots of a log in memory."""

    __slots__ = ("_by_offset",)

    def __init__(self) -> None:
        self._by_offset: dict[int, bytes] = {}

    def offsets(self) -> list[int]:
        return sorted(self._by_offset)

    def load(self, offset: int) -> bytes:
        return self._by_offset[offset]

    def save(self, offset: int, data: bytes) -> None:
        self._by_offset[offset] = data

    def remove(self, offset: int) -> None:
        self._by_offset.pop(offset, None)

    def begin_remove(self, offset: int) -> Callable[[], None]:
        self.remove(offset)
        return do_nothing

    def reader(self) -> Snapshots:
        copied = MemorySnapshots()
        copied._by_offset = self._by_offset.copy()
        return copied


def write_snapshot(producers: Iterable[Producer]) -> bytes:
    """The bytes of a `.snapshot` file."""
    entries = b"".join([producer.packed or producer.pack() for producer in producers])
    body = _COUNT.pack(len(entries) // ENTRY.size) + entries
    return _HEAD.pack(SNAPSHOT_VERSION, crc32c(body)) + body


def read_snapshot(data: bytes) -> list[Producer]:
    """Raises BadSnapshot."""
    try:
        version, crc = _HEAD.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _HEAD.size)
    except struct.error as error:
        raise BadSnapshot(f"{len(data)} bytes are too short") from error
    body = data[_HEAD.size :]
    if version != SNAPSHOT_VERSION:
        raise BadSnapshot(f"version {version} is unknown")
    if crc32c(body) != crc:
        raise BadSnapshot("its checksum is wrong")
    if len(body) - _COUNT.size != count * ENTRY.size:
        raise BadSnapshot(f"{len(data)} bytes for {count} entries")
    producers: dict[int, Producer] = {}
    for fields in ENTRY.iter_unpack(body[_COUNT.size :]):
        _add_entry(producers, *fields)
    for producer in producers.values():
        producer.pack()
    return list(producers.values())


def _add_entry(
    producers: dict[int, Producer],
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> None:
    """Add one entry. Everything except the batches comes from the producer's last entry."""
    earlier = producers.get(producer_id)
    producer = Producer(producer_id, epoch, coordinator_epoch, timestamp, transaction_first_offset)
    if earlier is not None and earlier.epoch == epoch:
        producer.sent = earlier.sent
    if last_offset >= 0:
        producer.sent.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
    producers[producer_id] = producer
