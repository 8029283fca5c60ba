"""DescribeProducers, key 61, version 0.

v0 flexible from the start (KIP-664)
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.repeats import Repeats
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.producer import Producer
from rota.coordinator.metadata.topic_names import invalid_reason
from rota.coordinator.replica.partition_lookup import PartitionLookup
from rota.protocol.errors import ErrorCode, message
from rota.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

NOT_HOSTED: Final = "This server does not host this topic-partition."  # Kafka's words, for an unknown topic alone


def describe_producers(node: Node, call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Return the producers with state in each partition's log, and where their open transactions begin."""
    partition_lookup, repeats = PartitionLookup(node.topics, node.partitions), Repeats()
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(
                    _partition(partition_lookup, repeats, topic.name, index) for index in topic.partition_indexes
                ),
            )
            for topic in request.topics
        )
    )


def _partition(partition_lookup: PartitionLookup, repeats: Repeats, name: str, index: int) -> PartitionResponse:
    if repeats.is_refused((name, index)):
        return PartitionResponse(partition_index=index, error_code=ErrorCode.INVALID_REQUEST)
    partition = partition_lookup.find((name, index))
    if partition is None:
        code, why = _missing(partition_lookup, name, index)
        return PartitionResponse(partition_index=index, error_code=code, error_message=why)
    try:
        producers = partition.log.producers.all()
    except StorageFailed:
        return PartitionResponse(partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    return PartitionResponse(partition_index=index, active_producers=tuple(map(_state, producers)))


def _missing(partition_lookup: PartitionLookup, name: str, index: int) -> tuple[ErrorCode, str | None]:
    why = invalid_reason(name)
    if why is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, message(f"Topic name is invalid: {why}")
    is_known = partition_lookup.topics.get(name) is not None
    return partition_lookup.missing((name, index)), None if is_known else NOT_HOSTED


def _state(producer: Producer) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.transaction_first_offset,
    )
