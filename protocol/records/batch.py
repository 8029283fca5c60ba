"""The header of a record batch (magic 2): its fields, its checksum, and the fields that a broker sets.

Laws
    The CRC32C covers the bytes from `attributes` on. Base offset, size, leader epoch, magic and the CRC itself are not
    covered, so a broker assigns offsets without a new checksum.
    This module never decodes records.
    The layout (KIP-98) is declared once, as FIELDS. The records follow it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import IntEnum
from struct import Struct, calcsize
from typing import Final

from rota.protocol.crc import crc32c
from rota.protocol.dataclass import dataclass
from rota.protocol.records.errors import CorruptBatch, InvalidBatch, UnsupportedMagic

FIELDS: Final = {  # big endian
    "base_offset": "q",
    "length": "i",  # of the bytes that follow it
    "leader_epoch": "i",
    "magic": "b",
    "crc": "I",
    "attributes": "h",
    "last_offset_delta": "i",
    "base_timestamp": "q",
    "max_timestamp": "q",
    "producer_id": "q",
    "producer_epoch": "h",
    "base_sequence": "i",
    "count": "i",
}
_NAMES: Final = list(FIELDS)


def fields(first: str, last: str, *, skipped: Collection[str] = ()) -> Struct:
    """Return the layout of the fields from `first` to `last`; those that are skipped have no value."""
    names = _NAMES[_NAMES.index(first) : _NAMES.index(last) + 1]
    codes = [f"{calcsize('>' + FIELDS[name])}x" if name in skipped else FIELDS[name] for name in names]
    return Struct(">" + "".join(codes))


def field_at(name: str) -> int:
    """Return the position of a field, in bytes from the begin of the batch."""
    return calcsize(">" + "".join([FIELDS[earlier] for earlier in _NAMES[: _NAMES.index(name)]]))


MAGIC: Final = 2
NO_TIMESTAMP: Final = -1

CODEC_BITS: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

SEQUENCE_MAX: Final = 0x7FFF_FFFF

_HEADER: Final = fields("base_offset", "count")
_PEEK: Final = fields("base_offset", "magic")
_OFFSET: Final = fields("base_offset", "base_offset")
_EPOCH: Final = fields("leader_epoch", "leader_epoch")
_LENGTH: Final = fields("length", "length")
_CRC: Final = fields("crc", "crc")
_ATTRIBUTES: Final = fields("attributes", "attributes")
_MAX_TIMESTAMP: Final = fields("max_timestamp", "max_timestamp")
_PRODUCER: Final = fields("producer_id", "base_sequence")
_LENGTH_AT: Final = field_at("length")
_EPOCH_AT: Final = field_at("leader_epoch")
_CRC_AT: Final = field_at("crc")
_ATTRIBUTES_AT: Final = field_at("attributes")
_MAX_TIMESTAMP_AT: Final = field_at("max_timestamp")
_PRODUCER_AT: Final = field_at("producer_id")

BATCH_HEADER_BYTES: Final = _HEADER.size
LOG_OVERHEAD: Final = _EPOCH_AT  # base offset and length, which the length does not include

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The compression of a batch: the low three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_CODECS: Final = frozenset(int(codec) for codec in Codec)


@dataclass(slots=True)
class BatchHeader:
    """The fields before the records, in their order. `size_bytes` is the whole batch, header included."""

    base_offset: int
    size_bytes: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def last_offset(self) -> int:
        """The offset of the last record, also when compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset of the first record after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """Raises ValueError for 5, 6 and 7, which `check_batch` refuses."""
        return Codec(self.attributes & CODEC_BITS)

    @property
    def is_log_append_time(self) -> bool:
        """The timestamp of every record is the broker's append time, `max_timestamp`."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Has a commit or abort marker of a transaction, which consumers do not return."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may remove the batch's tombstones (KIP-534); None before the first compaction."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, an int32 that wraps to 0; -1 when the producer is not idempotent."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; the batch may be incomplete, which `check_batch` detects.

    Raises CorruptBatch (UnsupportedMagic for message formats 0 and 1).
    """
    left = len(buffer) - position
    if left < BATCH_HEADER_BYTES or position < 0:
        raise _short(buffer, position, left)
    header = BatchHeader(*_HEADER.unpack_from(buffer, position))
    header.size_bytes += LOG_OVERHEAD
    if header.magic != MAGIC:
        raise _wrong_magic(header.magic, position)
    if header.size_bytes < BATCH_HEADER_BYTES:
        raise CorruptBatch(f"batch at {position}: size {header.size_bytes} is less than its header")
    return header


def read_size_and_magic(buffer: Buffer) -> tuple[int, int]:
    """(size in bytes, magic) of a batch of any message format. The buffer holds BATCH_HEADER_BYTES at least."""
    _, length, _, magic = _PEEK.unpack_from(buffer)
    return length + LOG_OVERHEAD, magic


def read_attributes(batch: Buffer) -> int:
    """The attributes of a whole batch of magic 2."""
    attributes: int = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)[0]
    return attributes


def read_max_timestamp(batch: Buffer) -> int:
    """The largest timestamp of a whole batch of magic 2, by its header."""
    timestamp: int = _MAX_TIMESTAMP.unpack_from(batch, _MAX_TIMESTAMP_AT)[0]
    return timestamp


def read_producer(batch: Buffer) -> tuple[int, int, int]:
    """(producer id, producer epoch, base sequence) of a whole batch of magic 2."""
    producer: tuple[int, int, int] = _PRODUCER.unpack_from(batch, _PRODUCER_AT)
    return producer


def with_producer(batch: Buffer, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
    """Return the batch as another producer, or with another sequence."""
    changed = bytearray(batch)
    _PRODUCER.pack_into(changed, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    return _with_checksum(changed)


def with_payload(batch: Buffer, codec: Codec, payload: bytes) -> bytes:
    """Return the batch with its records in another codec; `payload` are the bytes after the header."""
    changed = bytearray(batch[:BATCH_HEADER_BYTES]) + payload
    _LENGTH.pack_into(changed, _LENGTH_AT, len(changed) - LOG_OVERHEAD)
    _ATTRIBUTES.pack_into(changed, _ATTRIBUTES_AT, read_attributes(batch) & ~CODEC_BITS | codec)
    return _with_checksum(changed)


def without_append_time(batch: Buffer) -> bytes:
    """Return the batch as one of CreateTime."""
    changed = bytearray(batch)
    _ATTRIBUTES.pack_into(changed, _ATTRIBUTES_AT, read_attributes(batch) & ~LOG_APPEND_TIME_BIT)
    return _with_checksum(changed)


def _with_checksum(changed: bytearray) -> bytes:
    with memoryview(changed) as view:
        _CRC.pack_into(changed, _CRC_AT, crc32c(view[_ATTRIBUTES_AT:]))
    return bytes(changed)


def headers(buffer: Buffer, *, cut: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch in the buffer. Raises CorruptBatch.

    `cut`: the last batch may be incomplete, as in a Fetch response; it is left out.
    """
    position, end = 0, len(buffer)
    while position < end:
        if cut and end - position < BATCH_HEADER_BYTES:
            return
        header = read_header(buffer, position)
        if header.size_bytes > end - position:
            if cut:
                return
            raise _cut(position, header.size_bytes, end - position)
        yield position, header
        position += header.size_bytes


def check_batch(buffer: Buffer, position: int, header: BatchHeader, *, compacted: bool = False) -> None:
    """Raises CorruptBatch for a wrong size or checksum, InvalidBatch for a wrong count or codec.

    A producer's batch has one record for each offset; a batch of a `compacted` log may have fewer, or none.
    """
    left = len(buffer) - position
    if header.size_bytes > left:
        raise _cut(position, header.size_bytes, left)
    crc = crc32c(memoryview(buffer)[position + _ATTRIBUTES_AT : position + header.size_bytes])
    if crc != header.crc:
        raise CorruptBatch(f"batch at {position}: checksum {crc:#010x}, but its header says {header.crc:#010x}")
    if header.attributes & CODEC_BITS not in _CODECS:
        raise InvalidBatch(f"batch at {position}: unknown codec {header.attributes & CODEC_BITS}")
    offsets = header.last_offset_delta + 1
    if offsets < 1 or header.count > offsets or header.count < (0 if compacted else offsets):
        raise InvalidBatch(f"batch at {position}: {header.count} records for {offsets} offsets")


def stamp(batch: bytearray | memoryview, position: int, *, base_offset: int, leader_epoch: int) -> None:
    """Set base offset and leader epoch, which the checksum does not cover."""
    _OFFSET.pack_into(batch, position, base_offset)
    _EPOCH.pack_into(batch, position + _EPOCH_AT, leader_epoch)


def stamp_append_time(batch: bytearray | memoryview, position: int, *, append_time_ms: int) -> None:
    """Set LogAppendTime: `max_timestamp` is the timestamp of all records. Computes a new checksum."""
    header = read_header(batch, position)
    _ATTRIBUTES.pack_into(batch, position + _ATTRIBUTES_AT, header.attributes | LOG_APPEND_TIME_BIT)
    _MAX_TIMESTAMP.pack_into(batch, position + _MAX_TIMESTAMP_AT, append_time_ms)
    crc = crc32c(memoryview(batch)[position + _ATTRIBUTES_AT : position + header.size_bytes])
    _CRC.pack_into(batch, position + _CRC_AT, crc)


def _cut(position: int, size_bytes: int, left_bytes: int) -> CorruptBatch:
    return CorruptBatch(f"batch at {position}: {size_bytes} bytes, but {left_bytes} are left")


def _short(buffer: Buffer, position: int, left: int) -> CorruptBatch:
    if position >= 0 and left >= _PEEK.size:
        magic = _PEEK.unpack_from(buffer, position)[3]
        if magic != MAGIC:
            return _wrong_magic(magic, position)
    return CorruptBatch(f"batch at {position}: {max(left, 0)} bytes are less than a header")


def _wrong_magic(magic: int, position: int) -> CorruptBatch:
    if magic in (0, 1):
        return UnsupportedMagic(f"batch at {position}: message format {magic} is not supported any more")
    return CorruptBatch(f"batch at {position}: magic {magic} is unknown")
