"""DescribeTransactions, key 65, version 0 (KIP-664)."""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.coordinator.transaction.events import TopicPartition
from rota.coordinator.transaction.state import TransactionValue
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def describe_transactions(node: Node, call: Call, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Return the state of each transactional id. Its partitions are those that have no marker yet."""
    ids = request.transactional_ids
    return DescribeTransactionsResponse(transaction_states=tuple(_state(node, each) for each in ids))


def _state(node: Node, transactional_id: str) -> TransactionState:
    if not transactional_id:
        return TransactionState(error_code=ErrorCode.INVALID_REQUEST, transactional_id=transactional_id)
    value = node.transactions.describe(transactional_id)
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
