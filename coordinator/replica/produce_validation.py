"""The checks of a producer's batch before any log sees it, and the change of its codec (`compression.type`).

A batch is judged by its header. Its records are decoded only where a topic refuses old timestamps, and to name the
records at fault.

Laws
    B4  Bytes that are not one whole batch get Kafka's code: CORRUPT_MESSAGE for a length or a magic that no batch has,
        else INVALID_RECORD. Bytes after the batch that are not a whole one are left out.
    B5  As in Kafka the bit LogAppendTime is refused where the topic has that type or the batch has no time, else left
        out.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.log.batch_validation import refused
from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import (
    BATCH_HEADER_BYTES,
    CODEC_BITS,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
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
    without_append_time,
)
from rota.protocol.records.codecs import compress, decompress
from rota.protocol.records.errors import CorruptBatch
from rota.protocol.records.record import Record, read_records

RECORD_ERRORS_MAX: Final = 1000
LONG_MAX: Final = (1 << 63) - 1
ZSTD_SINCE: Final = 7
SIZE_MIN: Final = 14  # of the smallest record that there ever was
MAGIC_AT: Final = 16
INVALID_TIME: Final = "One or more records have been rejected due to invalid timestamp"
Buffer = bytes | memoryview


def only_batch(records: Buffer, version: int) -> Buffer:
    """B4. Return the one batch of magic 2, in a codec that this version may carry.

    Raises AppendRefused; as in Kafka it has a text only where the bytes do not begin with a batch.
    """
    end = len(records)
    if end < BATCH_HEADER_BYTES or read_size_and_magic(records) != (end, MAGIC):
        end = _end_of_only_batch(records)
    if version < ZSTD_SINCE and read_attributes(records) & CODEC_BITS == Codec.ZSTD:
        raise AppendRefused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "")
    return records if end == len(records) else records[:end]


def _end_of_only_batch(records: Buffer) -> int:
    end = _end_of_batch(records, 0)
    if end is None or read_size_and_magic(records)[1] != MAGIC:
        raise AppendRefused(ErrorCode.INVALID_RECORD, "")
    try:
        is_only = _end_of_batch(records, end) is None
    except AppendRefused as other:
        raise AppendRefused(other.code, "") from other
    if not is_only:
        raise AppendRefused(ErrorCode.INVALID_RECORD, "")
    if end < BATCH_HEADER_BYTES:
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, "")
    return end


def _end_of_batch(records: Buffer, position: int) -> int | None:
    """Return where the batch ends; None if it is not whole. Raises AppendRefused."""
    left = len(records) - position
    if left < LOG_OVERHEAD:
        return None
    size = int.from_bytes(records[position + 8 : position + LOG_OVERHEAD], signed=True)
    if size < SIZE_MIN:
        text = f"Record size {size} is less than the minimum record overhead ({SIZE_MIN})"
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, text)
    if left <= MAGIC_AT:
        return None
    magic = int.from_bytes(records[position + MAGIC_AT : position + MAGIC_AT + 1], signed=True)
    if not 0 <= magic <= MAGIC:
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    return position + LOG_OVERHEAD + size if LOG_OVERHEAD + size <= left else None


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
    if read_attributes(records) & LOG_APPEND_TIME_BIT and (
        config.log_append_time or read_max_timestamp(records) == NO_TIMESTAMP
    ):
        raise _append_time_refused(records)
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
        raise AppendRefused(ErrorCode.INVALID_TIMESTAMP, INVALID_TIME, faulty[:RECORD_ERRORS_MAX])


def with_create_time(records: Buffer) -> Buffer:
    """B5. Return the batch without the bit LogAppendTime. Raises AppendRefused."""
    if not read_attributes(records) & LOG_APPEND_TIME_BIT:
        return records
    try:
        check_batch(records, 0, read_header(records))
    except CorruptBatch as error:
        raise refused(error) from error
    return without_append_time(records)


def _append_time_refused(records: Buffer) -> AppendRefused:
    faulty = [(index, _of_append_time(record)) for index, record in enumerate(_decoded(records))]
    return AppendRefused(ErrorCode.INVALID_TIMESTAMP, INVALID_TIME, faulty[:RECORD_ERRORS_MAX])


def _of_append_time(record: Record) -> str:
    key, value = len(record.key or b""), len(record.value or b"")
    return (
        f"Invalid timestamp type in message DefaultRecord(offset={record.offset}, timestamp={record.timestamp}, "
        f"key={key} bytes, value={value} bytes). Producer should not set timestamp type to LogAppendTime."
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
