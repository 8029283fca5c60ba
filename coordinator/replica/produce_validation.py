"""The checks of a producer's batch before any log sees it, and the change of its codec (`compression.type`).

A batch is judged by its header. Its records are decoded only where a topic refuses old timestamps, and to name the
records at fault.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.log.batch_validation import refused
from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import (
    BATCH_HEADER_BYTES,
    CODEC_BITS,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Codec,
    check_batch,
    read_attributes,
    read_header,
    read_max_timestamp,
    read_size_and_magic,
    with_payload,
)
from rota.protocol.records.codecs import compress, decompress
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import Record, read_records

RECORD_ERRORS_MAX: Final = 1000
LONG_MAX: Final = (1 << 63) - 1
ZSTD_SINCE: Final = 7
Buffer = bytes | memoryview


def check_records(records: Buffer, version: int) -> ErrorCode:
    """NONE when it is exactly one whole batch of magic 2, in a codec that this version may carry.

    INVALID_RECORD for no batch, several or a cut one; CORRUPT_MESSAGE for a magic that does not exist.
    """
    if len(records) < BATCH_HEADER_BYTES:
        return ErrorCode.INVALID_RECORD
    size_bytes, magic = read_size_and_magic(records)
    if not 0 <= magic <= MAGIC:
        return ErrorCode.CORRUPT_MESSAGE
    if magic != MAGIC or size_bytes != len(records):
        return ErrorCode.INVALID_RECORD
    if version < ZSTD_SINCE and read_attributes(records) & CODEC_BITS == Codec.ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.NONE


def recompress(records: Buffer, codec: Codec | None, level: int | None) -> Buffer:
    """Return a checked batch in the codec that its topic keeps; None leaves it as the producer sent it.

    Raises AppendRefused.
    """
    if codec is None:
        return records
    try:
        header = read_header(records)
        if header.attributes & CODEC_BITS == codec:
            return records
        check_batch(records, 0, header)
    except CorruptBatch as error:
        raise refused(error) from error
    try:
        payload = decompress(header.codec, records[BATCH_HEADER_BYTES:])
    except CorruptBatch as error:
        raise AppendRefused(ErrorCode.INVALID_RECORD, str(error)) from error
    return with_payload(records, codec, compress(codec, payload, level))


def records_without_key(records: Buffer, topic_partition: str) -> AppendRefused | None:
    """The refusal of a batch for a compacted topic, with the records that have no key; None when all have one."""
    why = f"Compacted topic cannot accept message without key in topic partition {topic_partition}"
    faulty = [(index, why) for index, record in enumerate(_decoded(records)) if record.key is None]
    if not faulty:
        return None
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{why}')" for index, _ in faulty[:3])
    message = (
        f"One or more records have been rejected due to {len(faulty)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
    return AppendRefused(ErrorCode.INVALID_RECORD, message, faulty[:RECORD_ERRORS_MAX])


def is_transactional(records: Buffer | None) -> bool:
    """Whether these are records of a transaction; False for what is no batch of magic 2."""
    if records is None or len(records) < BATCH_HEADER_BYTES or not read_attributes(records) & TRANSACTIONAL_BIT:
        return False
    return read_size_and_magic(records)[1] == MAGIC


def check_times(records: Buffer, config: LogConfig, now_ms: int) -> None:
    """Refuse a checked batch with records that are too old or too new for the topic (KIP-937). Raises AppendRefused.

    The header alone shows records that are too new; records are decoded where a topic refuses old ones.
    """
    if config.log_append_time:
        return
    if config.timestamp_before_max_ms is None and read_max_timestamp(records) <= now_ms + config.timestamp_after_max_ms:
        return
    before_ms = LONG_MAX if config.timestamp_before_max_ms is None else config.timestamp_before_max_ms
    earliest, latest = now_ms - before_ms, now_ms + config.timestamp_after_max_ms
    faulty = [
        (index, _out_of_range(record, index, earliest, latest))
        for index, record in enumerate(_decoded(records))
        if record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest
    ]
    if faulty:
        raise AppendRefused(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            faulty[:RECORD_ERRORS_MAX],
        )


def _decoded(records: Buffer) -> list[Record]:
    try:
        return read_records(records)
    except CorruptBatch as error:
        raise refused(error) from error


def _out_of_range(record: Record, index: int, earliest: int, latest: int) -> str:
    return (
        f"Timestamp {record.timestamp} of message with offset {index} is out of range. "
        f"The timestamp should be within [{earliest}, {latest}]"
    )
