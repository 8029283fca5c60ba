"""ListPartitionReassignments, key 46, version 0.

v0 flexible (KIP-455)

`replicas` are the present ones: those that stay, are added and will be removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.coordinator.api.node import Call, Node
from rota.coordinator.controller.reassignment import is_under_way
from rota.coordinator.metadata.topic import PartitionState
from rota.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def list_partition_reassignments(
    node: Node, call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the reassignments that are under way, of the partitions named or of all."""
    topics = (
        OngoingTopicReassignment(name=name, partitions=partitions)
        for name, states in _requested(node, request)
        if (partitions := tuple(_ongoing(state) for state in states if is_under_way(state)))
    )
    return ListPartitionReassignmentsResponse(topics=tuple(topics))


def _requested(node: Node, request: ListPartitionReassignmentsRequest) -> Iterator[tuple[str, list[PartitionState]]]:
    if request.topics is None:
        for topic in node.topics:
            yield topic.name, list(topic.partitions)
        return
    for requested in request.topics:
        states = (node.topics.partition(requested.name, index) for index in requested.partition_indexes)
        yield requested.name, [state for state in states if state is not None]


def _ongoing(state: PartitionState) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=state.index,
        replicas=state.replicas,
        adding_replicas=state.adding,
        removing_replicas=state.removing,
    )
