"""The records of transactional ids as the bytes of `__transaction_state`, and back.

Laws
    Keys and values are byte-equal to Apache Kafka's, so that tools which read that topic keep working.
    Unknown key types (a newer broker's) are skipped, as Kafka does when it loads.
"""

from __future__ import annotations

from collections.abc import Iterable

from rota.coordinator.runtime.contract import Encoded
from rota.coordinator.transaction.events import TopicPartition
from rota.coordinator.transaction.state import TransactionRecord, TransactionValue
from rota.coordinator.transaction.transitions import CODES, OF_CODE, TransactionState
from rota.protocol import transaction_records as wire
from rota.protocol.wire import DecodeError


def encode(records: Iterable[TransactionRecord]) -> list[Encoded]:
    """Return key and value (v1) of each record."""
    return [
        (wire.encode_key(record.transactional_id), None if record.value is None else _encode_value(record.value))
        for record in records
    ]


def decode(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """Return the record in these bytes, or None for a kind that this release does not know. Raises DecodeError."""
    transactional_id = wire.decode_key(key)
    if transactional_id is None:
        return None
    return TransactionRecord(transactional_id, None if value is None else _decode_value(value))


def _encode_value(value: TransactionValue) -> bytes:
    is_empty = value.state is TransactionState.EMPTY  # which has null instead of no partitions
    return wire.encode_value(
        wire.TransactionLogValue(
            producer_id=value.producer_id,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            producer_epoch=value.producer_epoch,
            transaction_timeout_ms=value.timeout_ms,
            transaction_status=CODES[value.state],
            transaction_partitions=None if is_empty else _by_topic(value.partitions),
            transaction_last_update_timestamp_ms=value.update_ms,
            transaction_start_timestamp_ms=value.start_ms,
            client_transaction_version=value.client_version,
        )
    )


def _decode_value(raw: bytes) -> TransactionValue:
    value = wire.decode_value(raw)
    state = OF_CODE.get(value.transaction_status)
    if state is None:
        raise DecodeError(f"transaction status {value.transaction_status}")
    topics = value.transaction_partitions or ()
    return TransactionValue(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=tuple((topic.topic, index) for topic in topics for index in topic.partition_ids),
        update_ms=value.transaction_last_update_timestamp_ms,
        start_ms=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


def _by_topic(partitions: tuple[TopicPartition, ...]) -> tuple[wire.PartitionsOfTopic, ...]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return tuple(
        wire.PartitionsOfTopic(topic=topic, partition_ids=tuple(indexes)) for topic, indexes in by_topic.items()
    )
