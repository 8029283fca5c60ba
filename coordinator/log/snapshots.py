"""Producer state as a file, in Kafka's own form, so that idempotent producers survive a restart.

Layout (big endian): version i16 = 1, CRC32C u32 of all that follows, count i32, and for each producer: id i64,
epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64, coordinator epoch i32, first offset of
the open transaction i64. Only the last batch of each producer is in it, as in Kafka.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from struct import Struct
from typing import Final, Protocol

from rota.coordinator.log.producers import BatchMetadata, Producer
from rota.protocol.crc import crc32c

SNAPSHOT_VERSION: Final = 1
_HEAD: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
_ENTRY: Final = Struct(">qhiqiqiq")


class BadSnapshot(ValueError):
    """The file is not what was written; an older one, or the log itself, has the truth."""


class Snapshots(Protocol):
    """The producer states of one log by the offset they go up to. Methods raise StorageFailed."""

    def offsets(self) -> list[int]:
        """In ascending order."""

    def load(self, offset: int) -> bytes: ...

    def save(self, offset: int, data: bytes) -> None: ...

    def remove(self, offset: int) -> None: ...


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


def write_snapshot(producers: Iterable[Producer]) -> bytes:
    """The bytes of a `.snapshot` file."""
    entries = [_entry(producer) for producer in producers]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
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
    if len(body) - _COUNT.size != count * _ENTRY.size:
        raise BadSnapshot(f"{len(data)} bytes for {count} producers")
    return [_producer(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _entry(producer: Producer) -> bytes:
    last = producer.sent[-1] if producer.sent else BatchMetadata(-1, -1, 0, -1)
    return _ENTRY.pack(
        producer.producer_id,
        producer.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )


def _producer(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> Producer:
    producer = Producer(producer_id, epoch, coordinator_epoch, timestamp, transaction_first_offset)
    if last_offset >= 0:
        producer.sent.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
    return producer
