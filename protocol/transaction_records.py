"""Keys and values of the records in `__transaction_state`, byte-equal to Apache Kafka's.

A key is an int16 type and fields, a value is an int16 version and fields; a record without a value (a tombstone)
deletes its key. There is one type of keys, 0: a transactional id.

Laws
    Kafka writes values as v1 since transaction.version 1. Versions 0 and 1 are decoded.
    A key of another type is written by a newer broker: it decodes to None, and the reader skips the record.
"""

from __future__ import annotations

import struct
from typing import Final

from rota.protocol.compiler import codec
from rota.protocol.wire import NEVER, Array, DecodeError, Int8, Int16, Int32, Int64, String, wire, wired

KEY_TYPE: Final = 0
VALUE_VERSION: Final = 1
NO_PRODUCER_ID: Final = -1
_PREFIX: Final = struct.Struct(">h")


@wired
class TransactionLogKey:
    """Type 0."""

    VERSIONS, FLEXIBLE = range(1), NEVER

    transactional_id: str = wire(String)


@wired
class PartitionsOfTopic:
    topic: str = wire(String)
    partition_ids: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class TransactionLogValue:
    """v1 flexible; previous and next producer id, version of the client (KIP-890) as tags. Times in epoch ms."""

    VERSIONS, FLEXIBLE = range(2), 1

    producer_id: int = wire(Int64)
    previous_producer_id: int = wire(Int64, since=1, tag=0, default=NO_PRODUCER_ID)
    next_producer_id: int = wire(Int64, since=1, tag=1, default=NO_PRODUCER_ID)
    producer_epoch: int = wire(Int16)
    transaction_timeout_ms: int = wire(Int32)
    transaction_status: int = wire(Int8)
    transaction_partitions: tuple[PartitionsOfTopic, ...] | None = wire(
        Array(PartitionsOfTopic), nullable_since=0, default=()
    )
    transaction_last_update_timestamp_ms: int = wire(Int64)
    transaction_start_timestamp_ms: int = wire(Int64)
    client_transaction_version: int = wire(Int16, since=1, tag=2, default=0)


def encode_key(transactional_id: str) -> bytes:
    """Type and fields."""
    key = TransactionLogKey(transactional_id=transactional_id)
    return _PREFIX.pack(KEY_TYPE) + codec(TransactionLogKey, KEY_TYPE).encode(key)


def decode_key(raw: bytes) -> str | None:
    """Return the transactional id of a key; None for an unknown type. Raises DecodeError."""
    if _prefix(raw) != KEY_TYPE:
        return None
    key: TransactionLogKey = codec(TransactionLogKey, KEY_TYPE).decode(raw, _PREFIX.size)[0]
    return key.transactional_id


def encode_value(value: TransactionLogValue, version: int = VALUE_VERSION) -> bytes:
    """Version and fields."""
    return _PREFIX.pack(version) + codec(TransactionLogValue, version).encode(value)


def decode_value(raw: bytes) -> TransactionLogValue:
    """Decode a value. Raises DecodeError, also for an unknown version."""
    version = _prefix(raw)
    if version not in TransactionLogValue.VERSIONS:
        raise DecodeError(f"TransactionLogValue of version {version}")
    value: TransactionLogValue = codec(TransactionLogValue, version).decode(raw, _PREFIX.size)[0]
    return value


def _prefix(raw: bytes) -> int:
    if len(raw) < _PREFIX.size:
        raise DecodeError("a record of __transaction_state without its version")
    return int(_PREFIX.unpack_from(raw)[0])
