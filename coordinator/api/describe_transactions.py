"""DescribeTransactions, key 65, version 0 (KIP-664)."""

from __future__ import annotations

from functools import partial

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.repeats import Repeats
from rota.coordinator.scheduling.delayed_reply import DelayedReply, gather
from rota.coordinator.transaction.events import TopicPartition
from rota.coordinator.transaction.state import TransactionValue
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def describe_transactions(
    node: Node, call: Call, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | DelayedReply[DescribeTransactionsResponse]:
    """Return the state of each transactional id. TXC16: its partitions are those that have no marker yet.

    Delayed while records of these ids are being written.
    """
    repeats = Repeats()
    described = [_describe(node, repeats, each) for each in request.transactional_ids]
    return gather(described, lambda states: DescribeTransactionsResponse(transaction_states=tuple(states)))


def _describe(node: Node, repeats: Repeats, transactional_id: str) -> TransactionState | DelayedReply[TransactionState]:
    if not transactional_id or repeats.is_refused(transactional_id):
        return TransactionState(error_code=ErrorCode.INVALID_REQUEST, transactional_id=transactional_id)
    found = node.transactions.describe(transactional_id)
    if isinstance(found, DelayedReply):
        return found.map(partial(_state, transactional_id))
    return _state(transactional_id, found)


def _state(transactional_id: str, value: TransactionValue | ErrorCode) -> TransactionState:
    if not isinstance(value, TransactionValue):
        return TransactionState(error_code=value, transactional_id=transactional_id)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=value.state.value,
        transaction_timeout_ms=value.timeout_ms,
        transaction_start_time_ms=value.start_ms,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        topics=_by_topic(value.partitions),
    )


def _by_topic(partitions: tuple[TopicPartition, ...]) -> tuple[TopicData, ...]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return tuple(TopicData(topic=topic, partitions=tuple(indexes)) for topic, indexes in by_topic.items())
