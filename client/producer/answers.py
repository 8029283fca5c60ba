"""The action that a Produce response requires for a batch. Pure.

Laws
    Every error code has one action: delivered, retry, refresh, split or give up.
    `is_possibly_written` is true for the codes after which the records may be in the log.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from rota.client.errors import BrokerError, KafkaError
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.producer.batch import Batch, Failed, Written
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import PartitionProduceResponse, ProduceRequest

_POSSIBLY_WRITTEN: Final = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,  # also if the leadership was lost while the leader waited for followers
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class BatchAction(Enum):
    """What to do with a batch."""

    DELIVERED = "the broker has it"
    RETRY = "send it again"
    REFRESH = "read metadata, send it again"
    SPLIT = "send it in smaller batches"
    GIVE_UP = "sending again does not help"


def batch_action(code: int, count: int) -> BatchAction:
    """The action for an error code of a batch with `count` records. Sequence errors are handled before this."""
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return BatchAction.DELIVERED
    if code == ErrorCode.MESSAGE_TOO_LARGE and count > 1:
        return BatchAction.SPLIT
    match error_action(ProduceRequest.KEY, code):
        case ErrorAction.RETRY:
            return BatchAction.RETRY
        case ErrorAction.REFRESH:
            return BatchAction.REFRESH
        case _:
            return BatchAction.GIVE_UP


def is_possibly_written(code: int) -> bool:
    """Whether the records may be in the log after this error code."""
    return ErrorCode.of(code) in _POSSIBLY_WRITTEN


def written(answer: PartitionProduceResponse) -> Written:
    """The outcome of a delivered batch. A duplicate that the broker no longer remembers has no offset."""
    known = answer.error_code == ErrorCode.NONE
    return Written(answer.base_offset if known else -1, answer.log_append_time_ms if known else -1)


def refusal(batch: Batch, answer: PartitionProduceResponse, broker: str) -> BrokerError:
    """The broker's error for a batch."""
    return _error(batch, answer.error_code, answer.error_message, broker)


def refused(batch: Batch, answer: PartitionProduceResponse, broker: str) -> Failed:
    """The outcome of a batch that the broker refused, with errors of single records if it names them (KIP-467)."""
    cause = refusal(batch, answer, broker)
    records: dict[int, KafkaError] = {}
    alone = len(answer.record_errors) == 1
    for error in answer.record_errors:
        code = answer.error_code if alone else int(ErrorCode.INVALID_RECORD)
        records[error.batch_index] = _error(
            batch, code, error.batch_index_error_message or answer.error_message, broker
        )
    if records:
        detail = f"it was in a batch with {len(records)} that the broker refused, and was not written either"
        others = _error(batch, int(ErrorCode.INVALID_RECORD), detail, broker)
        records = {place: records.get(place, others) for place in range(batch.count)}
    return Failed(cause, batch.maybe_written, records)


def _error(batch: Batch, code: int, detail: str | None, broker: str) -> BrokerError:
    topic, partition = batch.queue.partition
    remedy = _REMEDIES.get(ErrorCode.of(code), "")
    return BrokerError(
        code, "writing", topic=topic, partition=partition, broker=broker, detail=detail or None, remedy=remedy
    )


_REMEDIES: Final = {
    ErrorCode.MESSAGE_TOO_LARGE: "(the topic's max.message.bytes, or the broker's message.max.bytes, says how large)",
}
