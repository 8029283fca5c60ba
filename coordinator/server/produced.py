"""What a broker asks of a producer's batch before any log sees it."""

from __future__ import annotations

from struct import Struct
from typing import Final

from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import BATCH_HEADER_BYTES, CODEC_BITS, LOG_OVERHEAD, MAGIC, TRANSACTIONAL_BIT, Codec

ZSTD_SINCE: Final = 7
_MAGIC_AT: Final = 16
_PREFIX: Final = Struct(">qiib")  # base offset, length, leader epoch, magic
_ATTRIBUTES: Final = Struct(">h")
_ATTRIBUTES_AT: Final = 21
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


def belongs_to_transaction(records: Buffer | None) -> bool:
    if records is None or len(records) < BATCH_HEADER_BYTES or records[_MAGIC_AT] != MAGIC:
        return False
    (attributes,) = _ATTRIBUTES.unpack_from(records, _ATTRIBUTES_AT)
    return bool(attributes & TRANSACTIONAL_BIT)


def max_timestamp(records: Buffer) -> int:
    """The largest timestamp of a checked batch, by its header."""
    stamp: int = _MAX_TIMESTAMP.unpack_from(records, _MAX_TIMESTAMP_AT)[0]
    return stamp
