"""AddPartitionsToTxn, key 24, versions 0-5.

v2 PRODUCER_FENCED · v3 flexible · v4 many transactions, verification alone (KIP-890) · v5 TRANSACTION_ABORTABLE

Versions 0-3 come from producers of transaction version 0. The later ones come from brokers that lead a partition:
either they verify, or they add a partition for a producer of transaction version 2.
A transaction of which one partition does not exist is not changed: the others get OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.transactions import fenced_code, replied
from rota.coordinator.metadata.topic import INTERNAL
from rota.coordinator.scheduling.delayed_reply import DelayedReply, all_of
from rota.coordinator.transaction.events import Producer, TopicPartition
from rota.coordinator.transaction.state import BUMPING, PartitionErrors
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FENCED_SINCE: Final = 2
BATCHED_SINCE: Final = 4
Errors = dict[TopicPartition, ErrorCode]


def add_partitions_to_txn(
    node: Node, call: Call, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | DelayedReply[AddPartitionsToTxnResponse]:
    """Add the partitions to the transactions, or verify that they are in them."""
    if call.version >= BATCHED_SINCE:
        return _batched(node, request.transactions)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )

    def response(errors: Errors) -> AddPartitionsToTxnResponse:
        codes = {partition: fenced_code(error, call.version, FENCED_SINCE) for partition, error in errors.items()}
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results(transaction.topics, codes))

    return replied(_change(node, transaction, client_version=0), response)


def _batched(
    node: Node, transactions: tuple[AddPartitionsToTxnTransaction, ...]
) -> DelayedReply[AddPartitionsToTxnResponse]:
    """Change all transactions; the response is given when each has its result."""

    def response(errors: list[Errors]) -> AddPartitionsToTxnResponse:
        results_of_all = (
            AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=_results_of(each, own))
            for each, own in zip(transactions, errors, strict=True)
        )
        return AddPartitionsToTxnResponse(results_by_transaction=tuple(results_of_all))

    return all_of(_change(node, each, client_version=BUMPING) for each in transactions).map(response)


def _change(
    node: Node, transaction: AddPartitionsToTxnTransaction, client_version: int
) -> Errors | DelayedReply[Errors]:
    partitions = tuple((topic.name, index) for topic in transaction.topics for index in topic.partitions)
    errors = _refused(node, transaction, partitions, is_client=client_version == 0)
    if errors:
        return errors
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    coordinator, transactional_id = node.transactions, transaction.transactional_id
    if transaction.verify_only:
        reply = coordinator.verify_partitions(transactional_id, producer, partitions)
    else:
        reply = coordinator.add_partitions(transactional_id, producer, partitions, client_version)
    return replied(reply, partial(_of_each, partitions))


def _refused(
    node: Node, transaction: AddPartitionsToTxnTransaction, partitions: tuple[TopicPartition, ...], *, is_client: bool
) -> Errors:
    errors = {partition: _error(node, partition, is_client=is_client) for partition in partitions}
    if any(errors.values()):
        return {partition: error or ErrorCode.OPERATION_NOT_ATTEMPTED for partition, error in errors.items()}
    if not transaction.transactional_id:
        return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
    return {}


def _error(node: Node, partition: TopicPartition, *, is_client: bool) -> ErrorCode:
    """No producer may name an internal topic: the offsets of a group are added by AddOffsetsToTxn."""
    if is_client and partition[0] in INTERNAL:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if node.topics.partition(*partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _of_each(partitions: tuple[TopicPartition, ...], body: PartitionErrors) -> Errors:
    return {partition: body.partitions.get(partition, body.error) for partition in partitions}


def results(topics: Iterable[AddPartitionsToTxnTopic], errors: Errors) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    """Return the errors as a request names the partitions: a topic without one has an empty result."""
    return tuple(
        AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=_results(topic, errors)) for topic in topics
    )


def _results_of(
    transaction: AddPartitionsToTxnTransaction, errors: Errors
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    """Return the errors of one transaction. As in Kafka, a verification has each topic and partition once."""
    if not transaction.verify_only:
        return results(transaction.topics, errors)
    by_topic: dict[str, list[int]] = {}
    for name, index in errors:
        by_topic.setdefault(name, []).append(index)
    topics = (AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes)) for name, indexes in by_topic.items())
    return results(topics, errors)


def _results(topic: AddPartitionsToTxnTopic, errors: Errors) -> tuple[AddPartitionsToTxnPartitionResult, ...]:
    return tuple(
        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=errors[topic.name, index])
        for index in topic.partitions
    )
