"""AlterPartitionReassignments, key 45, versions 0-1.

v0 flexible (KIP-455) · v1 may forbid another replication factor (KIP-860)

The broker that gets the request begins or cancels reassignments, by compare-and-set on the nodes of the topic; the
controller completes them when the new replicas have caught up. A target with the current replicas is complete at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.timeout import is_over
from rota.coordinator.controller_service.requests import ClusterRequests
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)


def alter_partition_reassignments(
    node: Node, call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse | DelayedReply[AlterPartitionReassignmentsResponse]:
    """Return one result for each partition."""
    if request.topics and is_over(request.timeout_ms):
        return _timed_out(request)
    return eager_tasks.start(_alter(node, request))


def _timed_out(request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    code = ErrorCode.REQUEST_TIMED_OUT
    responses = (
        ReassignableTopicResponse(
            name=topic.name,
            partitions=tuple(
                ReassignablePartitionResponse(partition_index=partition.partition_index, error_code=code)
                for partition in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return AlterPartitionReassignmentsResponse(error_code=code, responses=tuple(responses))


async def _alter(node: Node, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    is_replication_change_allowed = request.allow_replication_factor_change
    responses = await eager_tasks.gather(
        _topic(node, requested, is_replication_change_allowed) for requested in request.topics
    )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=is_replication_change_allowed,
        error_message=None if responses else "",  # as Kafka
        responses=tuple(responses),
    )


async def _topic(
    node: Node, requested: ReassignableTopic, is_replication_change_allowed: bool
) -> ReassignableTopicResponse:
    refusals = await _reassign(node, requested, is_replication_change_allowed)
    responses = tuple(_partition(index, refusals[index]) for index in _targets(requested))
    return ReassignableTopicResponse(name=requested.name, partitions=responses)


async def _reassign(
    node: Node, requested: ReassignableTopic, is_replication_change_allowed: bool
) -> Mapping[int, Refusal | None]:
    name, targets = requested.name, _targets(requested)
    topic = node.topics.get(name)
    if topic is None:
        unknown = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
        return dict.fromkeys(targets, unknown)
    known = {index: target for index, target in targets.items() if node.topics.partition(name, index) is not None}
    refusals: dict[int, Refusal | None] = {
        index: Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
        for index in targets.keys() - known.keys()
    }
    try:
        return refusals | await ClusterRequests(node.topics).reassign(
            topic, known, is_replication_change_allowed=is_replication_change_allowed
        )
    except StoreFailed as failure:
        return refusals | dict.fromkeys(known, Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure)))


def _targets(requested: ReassignableTopic) -> dict[int, tuple[int, ...] | None]:
    return {partition.partition_index: partition.replicas for partition in requested.partitions}


def _partition(index: int, refusal: Refusal | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
    )
