"""Vectors are records that Apache Kafka 4.3.1 wrote into its own `__transaction_state`."""

from __future__ import annotations

import pytest

from rota.protocol.transaction_records import (
    PartitionsOfTopic,
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from rota.protocol.wire import DecodeError

PREPARED = (
    "0001000000000000000100010000ea600202056461746103000000000000000200000001a2067f1cf0000001a2067f1cc902000800000000"
    "0000000102020002"
)
EMPTY = "0001000000000000000000000000ea600000000001a2067f183affffffffffffffff0100080000000000000000"
VALUE = TransactionLogValue(
    producer_id=1,
    previous_producer_id=1,
    producer_epoch=1,
    transaction_timeout_ms=60_000,
    transaction_status=2,
    transaction_partitions=(PartitionsOfTopic(topic="data", partition_ids=(0, 2)),),
    transaction_last_update_timestamp_ms=0x1A2067F1CF0,
    transaction_start_timestamp_ms=0x1A2067F1CC9,
    client_transaction_version=2,
)


def test_the_bytes_are_kafkas() -> None:
    assert decode_value(bytes.fromhex(PREPARED)) == VALUE
    assert encode_value(VALUE).hex() == PREPARED
    assert decode_value(bytes.fromhex(EMPTY)).transaction_partitions is None
    assert encode_value(decode_value(bytes.fromhex(EMPTY))).hex() == EMPTY


def test_version_0_has_no_tags() -> None:
    decoded = decode_value(encode_value(VALUE, 0))
    assert (decoded.producer_id, decoded.transaction_partitions) == (1, VALUE.transaction_partitions)
    assert (decoded.previous_producer_id, decoded.client_transaction_version) == (-1, 0)


def test_a_key_is_the_transactional_id() -> None:
    assert encode_key("tv2") == b"\0\0\0\3tv2"
    assert decode_key(b"\0\0\0\3tv2") == "tv2"
    assert decode_key(b"\0\1\0\3tv2") is None


@pytest.mark.parametrize("raw", [b"", b"\0", b"\0\2" + bytes(40), b"\0\1\0"])
def test_garbage_is_refused(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_value(raw)
