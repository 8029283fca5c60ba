"""AlterPartitionReassignments, key 45, versions 0-1.

v0 flexible (KIP-455) · v1 may forbid another replication factor (KIP-860)

There is one broker, so the only valid target is the current replica: such a reassignment is complete at once. None is
ever in progress, so none can be cancelled.
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import placement
from rota.coordinator.metadata.topic import Refusal
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)


def alter_partition_reassignments(
    node: Node, call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Return one result for each partition."""
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=tuple(_topic(node, requested) for requested in request.topics),
    )


def _topic(node: Node, requested: ReassignableTopic) -> ReassignableTopicResponse:
    responses = tuple(_partition(node, requested.name, partition) for partition in requested.partitions)
    return ReassignableTopicResponse(name=requested.name, partitions=responses)


def _partition(node: Node, name: str, requested: ReassignablePartition) -> ReassignablePartitionResponse:
    refusal = _refuse(node, name, requested)
    return ReassignablePartitionResponse(
        partition_index=requested.partition_index,
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
    )


def _refuse(node: Node, name: str, requested: ReassignablePartition) -> Refusal | None:
    topic = node.topics.get(name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    index = requested.partition_index
    if not 0 <= index < len(topic.partitions):
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if requested.replicas is None:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{name}-{index} is not being reassigned.")
    return placement.refuse_replicas(requested.replicas, node.topics.brokers)
