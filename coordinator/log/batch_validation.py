"""The checks of batches before they are appended to a log. Pure.

Laws
    A batch is refused before anything is written, with Kafka's error code.
    Records are decoded only where a topic compacts: a record without a key cannot be compacted.
    B3  A batch with a good checksum is refused for good: its producer would only send it again.
    B2  A batch takes no more offsets than it can have records.
"""

from __future__ import annotations

from rota.coordinator.log.contract import AppendRefused, LogConfig
from rota.coordinator.log.producer import BatchMetadata
from rota.coordinator.log.producers import Producers, Verification
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import BATCH_HEADER_BYTES, CODEC_BITS, BatchHeader, Buffer, check_batch, headers
from rota.protocol.records.errors import CorruptBatch, InvalidBatch, UnsupportedMagic
from rota.protocol.records.fast import OFFSET_MAX, RECORD_BYTES_MIN, RECORDS_PER_BATCH_MAX
from rota.protocol.records.record import read_records

Batches = list[tuple[int, BatchHeader]]


def admit(buffer: Buffer, config: LogConfig) -> Batches:
    """Return (position, header) of each batch. Raises AppendRefused."""
    try:
        batches = list(headers(buffer))
        for position, header in batches:
            _check_size(header, config)
            check_batch(buffer, position, header)
    except CorruptBatch as error:
        raise refused(error) from error
    if not batches:
        raise AppendRefused(ErrorCode.INVALID_RECORD, "there is no batch to append")
    for position, header in batches:
        _check_client(header)
        if config.compact:
            _check_keys(buffer, position)
    if len(buffer) > config.segment_bytes:
        raise AppendRefused(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"{len(buffer)} bytes do not fit a segment of {config.segment_bytes}"
        )
    return batches


def refused(error: CorruptBatch) -> AppendRefused:
    """B3. The refusal; producers retry CORRUPT_MESSAGE alone, which is for bytes that may have changed on their way."""
    match error:
        case UnsupportedMagic():
            code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        case InvalidBatch():
            code = ErrorCode.INVALID_RECORD
        case _:
            code = ErrorCode.CORRUPT_MESSAGE
    return AppendRefused(code, str(error))


def admit_replicated(buffer: Buffer, log_end_offset: int, leader_epoch: int) -> tuple[Batches, int]:
    """Return (position, header) of the batches that a follower appends, and their size in bytes.

    See `Log.append_as_follower`. Raises AppendRefused.
    """
    found: Batches = []
    size_bytes, next_offset = 0, log_end_offset
    try:
        for position, header in headers(buffer, cut=True):
            if header.leader_epoch > leader_epoch:
                break
            check_batch(buffer, position, header, compacted=True)
            if header.base_offset < 0 or header.last_offset > OFFSET_MAX:
                raise CorruptBatch(f"batch at {position}: offsets {header.base_offset} to {header.last_offset}")
            if header.base_offset < next_offset:
                raise AppendRefused(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {header.base_offset}, but {next_offset} is the next one"
                )
            found.append((position, header))
            size_bytes, next_offset = position + header.size_bytes, header.next_offset
    except CorruptBatch as error:
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return found, size_bytes


def admit_sequences(
    batches: Batches, producers: Producers, verification: Verification | None = None
) -> BatchMetadata | None:
    """Return the metadata of a duplicate batch, of which nothing is written, else None. Raises AppendRefused."""
    if len(batches) == 1:
        header = batches[0][1]
        return producers.check(header, verification) if header.producer_id >= 0 else None
    tried = producers.overlay(header.producer_id for _, header in batches if header.producer_id >= 0)
    for _, header in batches:
        if header.producer_id >= 0:
            sent = tried.check(header, verification)
            if sent is not None:
                return sent
            tried.record(header)
    return None


def _check_size(header: BatchHeader, config: LogConfig) -> None:
    if header.size_bytes > config.message_bytes_max:
        raise AppendRefused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {header.size_bytes} bytes, but the topic takes {config.message_bytes_max}",
        )


def _check_client(header: BatchHeader) -> None:
    """Refuse batches that only a broker may write, and those that cannot have their records. Raises AppendRefused."""
    if header.count > _records_max(header):
        raise AppendRefused(ErrorCode.INVALID_RECORD, f"{header.count} records in {header.size_bytes} bytes")
    if header.base_offset != 0:
        raise AppendRefused(ErrorCode.INVALID_RECORD, f"base offset {header.base_offset}, which only a log may give")
    if header.is_control:
        raise AppendRefused(ErrorCode.INVALID_RECORD, "clients do not write control batches")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise AppendRefused(ErrorCode.INVALID_RECORD, f"producer {header.producer_id} without a sequence")
    if header.is_log_append_time:
        raise AppendRefused(ErrorCode.INVALID_TIMESTAMP, "only a broker sets the append time")


def _records_max(header: BatchHeader) -> int:
    """B2. How many records the batch can have, by its size; a codec makes any number of equal ones small."""
    if header.attributes & CODEC_BITS:
        return RECORDS_PER_BATCH_MAX
    return (header.size_bytes - BATCH_HEADER_BYTES) // RECORD_BYTES_MIN


def _check_keys(buffer: Buffer, position: int) -> None:
    try:
        records = read_records(buffer, position)
    except CorruptBatch as error:
        raise refused(error) from error
    if any(record.key is None for record in records):
        raise AppendRefused(ErrorCode.INVALID_RECORD, "a compacted topic takes no record without a key")
