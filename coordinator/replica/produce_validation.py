"""What a broker asks of a producer's batch, and does to it, before any log sees it.

A batch is looked at from outside. Its records are decoded where a topic refuses old timestamps, to name the records
at fault, and not at all on the way of every other batch.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.protocol.crc import crc32c
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import (
    BATCH_HEADER_BYTES,
    CODEC_BITS,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Codec,
    check_batch,
    read_header,
)
from rota.protocol.records.codecs import compress, decompress
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import Record, read_records

RECORD_ERRORS_MAX: Final = 1000
LONG_MAX: Final = (1 << 63) - 1
ZSTD_SINCE: Final = 7
_MAGIC_AT: Final = 16
_PREFIX: Final = Struct(">qiib")  # base offset, length, leader epoch, magic
_ATTRIBUTES: Final = Struct(">h")
_ATTRIBUTES_AT: Final = 21
_LENGTH: Final = Struct(">i")
_LENGTH_AT: Final = 8
_CRC: Final = Struct(">I")
_CRC_AT: Final = 17
_MAX_TIMESTAMP: Final = Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35

Buffer = bytes | memoryview


def check_records(records: Buffer, version: int) -> ErrorCode:
    """NONE when it is exactly one whole batch of magic 2, in a codec that this version may carry.

    INVALID_RECORD for none, several or a cut one; CORRUPT_MESSAGE for a magic that never was.
    """
    if len(records) < BATCH_HEADER_BYTES:
        return ErrorCode.INVALID_RECORD
    _, length, _, magic = _PREFIX.unpack_from(records)
    if not 0 <= magic <= MAGIC:
        return ErrorCode.CORRUPT_MESSAGE
    if magic != MAGIC or length + LOG_OVERHEAD != len(records):
        return ErrorCode.INVALID_RECORD
    (attributes,) = _ATTRIBUTES.unpack_from(records, _ATTRIBUTES_AT)
    if version < ZSTD_SINCE and attributes & CODEC_BITS == Codec.ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.NONE


def recoded(records: Buffer, codec: Codec | None, level: int | None) -> Buffer:
    """A checked batch in the codec that its topic keeps (`compression.type`); None leaves it as it came.

    Raises AppendRefused, CORRUPT_MESSAGE.
    """
    if codec is None:
        return records
    try:
        header = read_header(records)
        if header.attributes & CODEC_BITS == codec:
            return records
        check_batch(records, 0, header)
        payload = compress(codec, decompress(header.codec, records[BATCH_HEADER_BYTES:]), level)
    except CorruptBatch as error:
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    batch = bytearray(records[:BATCH_HEADER_BYTES]) + payload
    _LENGTH.pack_into(batch, _LENGTH_AT, len(batch) - LOG_OVERHEAD)
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, header.attributes & ~CODEC_BITS | codec)
    with memoryview(batch) as view:
        _CRC.pack_into(batch, _CRC_AT, crc32c(view[_ATTRIBUTES_AT:]))
    return bytes(batch)


def without_key(records: Buffer, where: str) -> AppendRefused | None:
    """The refusal of a batch for a compacted topic, with the records that have no key; None when all have one."""
    why = f"Compacted topic cannot accept message without key in topic partition {where}"
    wrong = [(place, why) for place, record in enumerate(_decoded(records)) if record.key is None]
    if not wrong:
        return None
    shown = ", ".join(f"RecordError(batchIndex={place}, message='{why}')" for place, _ in wrong[:3])
    message = (
        f"One or more records have been rejected due to {len(wrong)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
    return AppendRefused(ErrorCode.INVALID_RECORD, message, wrong[:RECORD_ERRORS_MAX])


def belongs_to_transaction(records: Buffer | None) -> bool:
    if records is None or len(records) < BATCH_HEADER_BYTES or records[_MAGIC_AT] != MAGIC:
        return False
    (attributes,) = _ATTRIBUTES.unpack_from(records, _ATTRIBUTES_AT)
    return bool(attributes & TRANSACTIONAL_BIT)


def check_times(records: Buffer, config: LogConfig, now_ms: int) -> None:
    """Whether the records of a checked batch are of a time that the topic takes (KIP-937). Raises AppendRefused.

    What lies ahead is seen by the header alone; records are decoded where a topic refuses the past, or to name them.
    """
    if config.log_append_time:
        return
    if config.timestamp_before_max_ms is None and max_timestamp(records) <= now_ms + config.timestamp_after_max_ms:
        return
    before_ms = LONG_MAX if config.timestamp_before_max_ms is None else config.timestamp_before_max_ms
    earliest, latest = now_ms - before_ms, now_ms + config.timestamp_after_max_ms
    wrong = [
        (place, _out_of_range(record, place, earliest, latest))
        for place, record in enumerate(_decoded(records))
        if record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest
    ]
    if wrong:
        raise AppendRefused(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            wrong[:RECORD_ERRORS_MAX],
        )


def _decoded(records: Buffer) -> list[Record]:
    try:
        return read_records(records)
    except CorruptBatch as error:
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _out_of_range(record: Record, place: int, earliest: int, latest: int) -> str:
    return (
        f"Timestamp {record.timestamp} of message with offset {place} is out of range. "
        f"The timestamp should be within [{earliest}, {latest}]"
    )


def max_timestamp(records: Buffer) -> int:
    """The largest timestamp of a checked batch, by its header."""
    stamp: int = _MAX_TIMESTAMP.unpack_from(records, _MAX_TIMESTAMP_AT)[0]
    return stamp
