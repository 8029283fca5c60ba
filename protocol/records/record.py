"""The records of a batch: decode a batch, encode a batch, build a batch record by record.

Laws
    read(write(records)) = records with every codec, and other clients decode the same records.
    Garbage raises CorruptBatch, in bounded time and memory.
    The records of a new batch have consecutive offsets from its base offset; only compaction leaves gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rota.protocol.crc import crc32c
from rota.protocol.records.batch import (
    BATCH_HEADER_BYTES,
    CODEC_BITS,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    Codec,
    check_batch,
    fields,
    headers,
    read_header,
)
from rota.protocol.records.codecs import DECOMPRESSED_BYTES_MAX, compress, decompress
from rota.protocol.records.errors import CorruptBatch, InvalidBatch
from rota.protocol.records.fast import Headers, Record, RecordBuffer, decode_records, encode_kept, encode_pairs
from rota.protocol.records.fast import encode_records as _encode_records

__all__ = [
    "BatchBuilder",
    "Headers",
    "Record",
    "read_all",
    "read_records",
    "rewrite_batch",
    "write_batch",
    "write_encoded",
    "write_pairs",
]

_HEAD: Final = fields("base_offset", "crc")
_BODY: Final = fields("attributes", "count")  # what the checksum covers, with the records
_UNCOUNTED_BYTES: Final = BATCH_HEADER_BYTES - LOG_OVERHEAD

Pair = tuple[bytes | None, bytes | None]


def read_records(buffer: Buffer, position: int = 0, *, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """The records of the batch at `position`, checksum checked, decompressed to `limit_bytes` at most.

    Raises CorruptBatch; InvalidBatch if the checksum is right. The marker of a control batch is a record.
    """
    header = read_header(buffer, position)
    check_batch(buffer, position, header, compacted=True)
    try:
        return _records(buffer, position, header, limit_bytes)
    except CorruptBatch as error:
        raise InvalidBatch(f"batch at {position}: {error}") from error


def read_all(buffer: Buffer, *, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """The records of a Fetch response, whose last batch may be incomplete; control batches are left out."""
    records: list[Record] = []
    for position, header in headers(buffer, cut=True):
        if not header.is_control:
            check_batch(buffer, position, header, compacted=True)
            records += _records(buffer, position, header, limit_bytes)
    return records


def write_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_control: bool = False,
    is_transactional: bool = False,
    leader_epoch: int = -1,
) -> bytes:
    """One batch; record i has offset base_offset + i, its `offset` is ignored. Raises ValueError for no records."""
    if not records:
        raise ValueError("a batch holds at least one record")
    first = records[0].timestamp
    payload = _encode_records(list(records), first)
    attributes = int(codec) | (TRANSACTIONAL_BIT if is_transactional else 0) | (CONTROL_BIT if is_control else 0)
    return _batch(
        payload if codec is Codec.NONE else compress(codec, payload, level),
        base_offset,
        leader_epoch,
        attributes,
        len(records) - 1,
        first,
        max(record.timestamp for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )


def write_pairs(
    pairs: list[Pair],
    timestamp: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """One uncompressed batch of (key, value) pairs with one timestamp, for the broker's own records."""
    if not pairs:
        raise ValueError("a batch holds at least one record")
    count = len(pairs)
    return _batch(
        encode_pairs(pairs),
        base_offset,
        leader_epoch,
        0,
        count - 1,
        timestamp,
        timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )


def write_encoded(records: bytes, count: int, timestamp: int, base_offset: int, leader_epoch: int) -> bytes:
    """`write_pairs` of records that are encoded already, by `encode_pairs` or `offset_records`; at least one."""
    delta = count - 1
    body = _BODY.pack(0, delta, timestamp, timestamp, -1, -1, -1, count)
    crc = crc32c(records, crc32c(body))
    size = _UNCOUNTED_BYTES + len(records)
    return _HEAD.pack(base_offset, size, leader_epoch, MAGIC, crc) + body + records


def rewrite_batch(
    header: BatchHeader, records: Sequence[Record], *, level: int | None = None, delete_horizon_ms: int | None = None
) -> bytes:
    """The batch with fewer records, after compaction: same offsets, sequence, codec, flags, leader epoch.

    `records` may be empty: the header keeps the producer's last sequence. `delete_horizon_ms` is the time at which
    tombstones may be removed (KIP-534); None keeps that of the batch.
    """
    attributes = header.attributes
    if delete_horizon_ms is None:
        delete_horizon_ms = header.delete_horizon_ms
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    else:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    kept = list(records)
    payload = encode_kept(kept, header.base_offset, base_timestamp)
    if kept:
        payload = compress(header.codec, payload, level)
        latest = header.max_timestamp if header.is_log_append_time else max(record.timestamp for record in kept)
    else:
        attributes &= ~CODEC_BITS
        latest = header.max_timestamp
    return _batch(
        payload,
        header.base_offset,
        header.leader_epoch,
        attributes,
        header.last_offset_delta,
        base_timestamp,
        latest,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        len(kept),
    )


class BatchBuilder:
    """A batch to which a producer appends records, up to `bytes_max` before compression."""

    __slots__ = ("_codec", "_level", "records")

    def __init__(self, bytes_max: int, codec: Codec = Codec.NONE, level: int | None = None) -> None:
        self.records = RecordBuffer(bytes_max - BATCH_HEADER_BYTES)
        self._codec = codec
        self._level = level

    @property
    def count(self) -> int:
        return self.records.count

    @property
    def size_bytes(self) -> int:
        """Size of header and records before compression: that of `build` with codec NONE."""
        return BATCH_HEADER_BYTES + self.records.size_bytes

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers = ()) -> bool:
        """False when the record does not fit. The first record always fits: the broker checks its size."""
        return self.records.append(timestamp, key, value, headers)

    def build(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
    ) -> bytes:
        """The batch with base offset 0. Can be called again with another sequence. Raises ValueError for no records."""
        records = self.records
        if not records.count:
            raise ValueError("a batch holds at least one record")
        return _batch(
            compress(self._codec, records.payload(), self._level),
            0,
            -1,
            int(self._codec) | (TRANSACTIONAL_BIT if is_transactional else 0),
            records.count - 1,
            records.base_timestamp,
            records.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            records.count,
        )


def _records(buffer: Buffer, position: int, header: BatchHeader, limit_bytes: int) -> list[Record]:
    start, end = position + BATCH_HEADER_BYTES, position + header.size_bytes
    if header.attributes & CODEC_BITS and header.count:
        with memoryview(buffer) as view:
            data = decompress(header.codec, view[start:end], limit_bytes)
        start, end = 0, len(data)
    elif isinstance(buffer, bytes):
        data = buffer
    else:
        data = bytes(buffer[start:end])
        start, end = 0, len(data)
    append_time_ms = header.max_timestamp if header.is_log_append_time else None
    return decode_records(data, start, end, header.count, header.base_offset, header.base_timestamp, append_time_ms)


def _batch(
    payload: bytes,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    count: int,
) -> bytes:
    body = _BODY.pack(
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    crc = crc32c(payload, crc32c(body))
    return _HEAD.pack(base_offset, _UNCOUNTED_BYTES + len(payload), leader_epoch, MAGIC, crc) + body + payload
