"""What a broker's answer means for a batch. Pure.

Laws
    Every code leads to one of: delivered, once more, split, given up.
    `doubts`: after such an answer the records may be in the log all the same.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from rota.client.errors import BrokerError, KafkaError
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.producer.batch import Batch, Failed, Written
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import PartitionProduceResponse, ProduceRequest

_DOUBTFUL: Final = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,  # also when leadership went away while followers were waited for
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class Next(Enum):
    """What to do with a batch."""

    DELIVERED = "the broker has it"
    AGAIN = "send it again"
    ELSEWHERE = "read metadata, send it again"
    SPLIT = "send it in smaller batches"
    GIVE_UP = "sending again does not help"


def judged(code: int, count: int) -> Next:
    """`count`: how many records the batch has. The sequences have their say before this."""
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return Next.DELIVERED
    if code == ErrorCode.MESSAGE_TOO_LARGE and count > 1:
        return Next.SPLIT
    match error_action(ProduceRequest.KEY, code):
        case ErrorAction.RETRY:
            return Next.AGAIN
        case ErrorAction.REFRESH:
            return Next.ELSEWHERE
        case _:
            return Next.GIVE_UP


def doubts(code: int) -> bool:
    """Whether the records may have been written."""
    return ErrorCode.of(code) in _DOUBTFUL


def written(answer: PartitionProduceResponse) -> Written:
    """Where they are. A duplicate that the broker no longer remembers has no offset."""
    known = answer.error_code == ErrorCode.NONE
    return Written(answer.base_offset if known else -1, answer.log_append_time_ms if known else -1)


def refusal(batch: Batch, answer: PartitionProduceResponse, broker: str) -> BrokerError:
    """The error that the broker gave for a batch."""
    return _error(batch, answer.error_code, answer.error_message, broker)


def refused(batch: Batch, answer: PartitionProduceResponse, broker: str) -> Failed:
    """A batch that is given up because of an answer, record by record where the broker says which (KIP-467)."""
    cause = refusal(batch, answer, broker)
    told: dict[int, KafkaError] = {}
    alone = len(answer.record_errors) == 1
    for one in answer.record_errors:
        code = answer.error_code if alone else int(ErrorCode.INVALID_RECORD)
        told[one.batch_index] = _error(batch, code, one.batch_index_error_message or answer.error_message, broker)
    if told:
        detail = f"it was in a batch with {len(told)} that the broker refused, and was not written either"
        others = _error(batch, int(ErrorCode.INVALID_RECORD), detail, broker)
        told = {place: told.get(place, others) for place in range(batch.count)}
    return Failed(cause, batch.doubt, told)


def _error(batch: Batch, code: int, detail: str | None, broker: str) -> BrokerError:
    topic, partition = batch.queue.partition
    remedy = _REMEDIES.get(ErrorCode.of(code), "")
    return BrokerError(
        code, "writing", topic=topic, partition=partition, broker=broker, detail=detail or None, remedy=remedy
    )


_REMEDIES: Final = {
    ErrorCode.MESSAGE_TOO_LARGE: "(the topic's max.message.bytes, or the broker's message.max.bytes, says how large)",
}
