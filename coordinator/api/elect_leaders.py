"""ElectLeaders, key 43, versions 0-2.

v1 unclean elections (KIP-460) · v2 flexible

A partition whose preferred replica leads needs no election, nor, in an unclean election, one that has a leader. With
one replica that holds for every partition except those whose log failed: these have no leader until the broker
restarts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rota.coordinator.api.metadata import availability
from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode, message
from rota.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

PREFERRED: Final = 0
UNCLEAN: Final = 1


def elect_leaders(node: Node, call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Return one result for each partition named; for a request without topics, only the partitions with an error."""
    code = ErrorCode.NONE if request.election_type in (PREFERRED, UNCLEAN) else ErrorCode.INVALID_REQUEST
    if request.topic_partitions is None:
        return ElectLeadersResponse(error_code=code, replica_election_results=tuple(_all_topics(node, request)))
    results = tuple(_topic(node, request, requested) for requested in request.topic_partitions)
    return ElectLeadersResponse(error_code=code, replica_election_results=results)


def _all_topics(node: Node, request: ElectLeadersRequest) -> list[ReplicaElectionResult]:
    found = []
    for topic in node.topics:
        requested = TopicPartitions(topic=topic.name, partitions=tuple(range(len(topic.partitions))))
        result = _topic(node, request, requested)
        failed = [
            partition for partition in result.partition_result if partition.error_code != ErrorCode.ELECTION_NOT_NEEDED
        ]
        if failed:
            found.append(ReplicaElectionResult(topic=topic.name, partition_result=tuple(failed)))
    return found


def _topic(node: Node, request: ElectLeadersRequest, requested: TopicPartitions) -> ReplicaElectionResult:
    results = [_partition(node, request.election_type, requested.topic, index) for index in _once(requested.partitions)]
    return ReplicaElectionResult(topic=requested.topic, partition_result=tuple(results))


def _once(indexes: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(indexes))


def _partition(node: Node, election: int, name: str, index: int) -> PartitionResult:
    code, why = _outcome(node, election, name, index)
    return PartitionResult(partition_id=index, error_code=code, error_message=message(why))


def _outcome(node: Node, election: int, name: str, index: int) -> tuple[ErrorCode, str]:
    if election not in (PREFERRED, UNCLEAN):
        return ErrorCode.INVALID_REQUEST, f"Unknown election type {election}"
    topic = node.topics.get(name)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    if not 0 <= index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
    _, _, offline = availability(node, topic, topic.partitions[index])
    if not offline:
        return ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    if election == PREFERRED:
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
