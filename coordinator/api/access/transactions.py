"""Guards of the APIs that name transactional ids, but InitProducerId, which is in `cluster`.

Law
    AT7 A transaction of which one partition is refused is not changed, and neither is one that another principal
        coordinates: its state is shown with DESCRIBE on its id alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from rota.coordinator.api.access.request import CLUSTER, GROUP, TOPIC, RequestAccess, Serve, after
from rota.coordinator.api.add_partitions_to_txn import BATCHED_SINCE, Errors, results
from rota.coordinator.security.operations import Operation, ResourceType
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from rota.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from rota.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from rota.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from rota.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

TRANSACTION: Final = ResourceType.TRANSACTIONAL_ID
DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_O = Operation


def add_partitions_to_txn(access: RequestAccess, request: AddPartitionsToTxnRequest, serve: Serve) -> Any:
    """CLUSTER_ACTION for brokers (v4+); for producers WRITE on the transactional id and on each topic."""
    if access.call.version >= BATCHED_SINCE:
        if access.authorize(_O.CLUSTER_ACTION, CLUSTER):
            return serve(request)
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not access.authorize(_O.WRITE, TRANSACTION, request.v3_and_below_transactional_id):
        return _refused(request, dict.fromkeys(_partitions(request), DENIED))
    _, denied = access.split(_O.WRITE, TOPIC, request.v3_and_below_topics, lambda topic: topic.name)
    if not denied:
        return serve(request)
    names = {topic.name for topic in denied}
    return _refused(request, {partition: _error(access, partition, names) for partition in _partitions(request)})


def _partitions(request: AddPartitionsToTxnRequest) -> Iterator[tuple[str, int]]:
    return ((topic.name, index) for topic in request.v3_and_below_topics for index in topic.partitions)


def _error(access: RequestAccess, partition: tuple[str, int], denied: set[str]) -> ErrorCode:
    if partition[0] in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if access.node.topics.partition(*partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.OPERATION_NOT_ATTEMPTED


def _refused(request: AddPartitionsToTxnRequest, errors: Errors) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results(request.v3_and_below_topics, errors))


def add_offsets_to_txn(access: RequestAccess, request: AddOffsetsToTxnRequest, serve: Serve) -> Any:
    """WRITE on the transactional id and READ on the group."""
    if not access.authorize(_O.WRITE, TRANSACTION, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=DENIED)
    if not access.authorize(_O.READ, GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return serve(request)


def end_txn(access: RequestAccess, request: EndTxnRequest, serve: Serve) -> Any:
    """WRITE on the transactional id."""
    if access.authorize(_O.WRITE, TRANSACTION, request.transactional_id):
        return serve(request)
    return EndTxnResponse(error_code=DENIED)


def describe_transactions(access: RequestAccess, request: DescribeTransactionsRequest, serve: Serve) -> Any:
    """DESCRIBE on each transactional id; topics without DESCRIBE are left out."""
    allowed, denied = access.split(_O.DESCRIBE, TRANSACTION, request.transactional_ids, lambda name: name)
    refused = {name: TransactionState(error_code=DENIED, transactional_id=name) for name in denied}

    def finish(response: DescribeTransactionsResponse) -> DescribeTransactionsResponse:
        described = {state.transactional_id: _visible(access, state) for state in response.transaction_states}
        states = (refused.get(name) or described[name] for name in request.transactional_ids)
        return replace(response, transaction_states=tuple(states))

    return after(serve(replace(request, transactional_ids=tuple(allowed))), finish)


def _visible(access: RequestAccess, state: TransactionState) -> TransactionState:
    topics = (topic for topic in state.topics if access.is_allowed(_O.DESCRIBE, TOPIC, topic.topic))
    return replace(state, topics=tuple(topics))


def list_transactions(access: RequestAccess, request: ListTransactionsRequest, serve: Serve) -> Any:
    """DESCRIBE on a transactional id shows it."""

    def finish(response: ListTransactionsResponse) -> ListTransactionsResponse:
        states = response.transaction_states
        visible = (state for state in states if access.is_allowed(_O.DESCRIBE, TRANSACTION, state.transactional_id))
        return replace(response, transaction_states=tuple(visible))

    return after(serve(request), finish)
