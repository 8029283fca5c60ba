"""ElectLeaders, key 43, versions 0-2.

v1 unclean elections (KIP-460) · v2 flexible

The broker that gets the request elects: by compare-and-set on the partition's state, which any broker may do. A
partition whose preferred replica leads needs no election, nor, in an unclean election, one that has a leader. The
replica of this broker cannot lead while its log has failed.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.metadata import availability
from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.timeout import is_over
from rota.coordinator.controller_service.requests import (
    NONE_ELIGIBLE,
    NOT_NEEDED,
    PREFERRED_NOT_AVAILABLE,
    ClusterRequests,
    preferred_election,
    unclean_election,
)
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import PartitionState, Refusal, Topic
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode, message
from rota.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED: Final = 0
UNCLEAN: Final = 1


_ELECTIONS: Final = {PREFERRED: preferred_election, UNCLEAN: unclean_election}
_NOT_AVAILABLE: Final = {PREFERRED: PREFERRED_NOT_AVAILABLE, UNCLEAN: NONE_ELIGIBLE}

Results = dict[tuple[str, int], Refusal | None]


def elect_leaders(
    node: Node, call: Call, request: ElectLeadersRequest
) -> ElectLeadersResponse | DelayedReply[ElectLeadersResponse]:
    """Return one result for each partition named; for a request without topics, all but those that need no election."""
    if is_over(request.timeout_ms) and request.topic_partitions != ():
        return _timed_out(request)
    return eager_tasks.start(_elect_leaders(node, request))


def _timed_out(request: ElectLeadersRequest) -> ElectLeadersResponse:
    code = ErrorCode.REQUEST_TIMED_OUT
    results = (
        ReplicaElectionResult(
            topic=named.topic,
            partition_result=tuple(PartitionResult(partition_id=index, error_code=code) for index in named.partitions),
        )
        for named in request.topic_partitions or ()
    )
    return ElectLeadersResponse(error_code=code, replica_election_results=tuple(results))


async def _elect_leaders(node: Node, request: ElectLeadersRequest) -> ElectLeadersResponse:
    is_known = request.election_type in _ELECTIONS
    results: Results = {}
    eligible = list[tuple[Topic, int]]()
    for name, index in _partitions(node, request):
        topic, state = node.topics.get(name), node.topics.partition(name, index)
        refusal = _refuse(node, request.election_type, name, index, topic, state)
        results[name, index] = refusal
        if topic is not None and refusal is None:
            eligible.append((topic, index))
    if eligible:
        try:
            results |= await ClusterRequests(node.topics).elect(eligible, _ELECTIONS[request.election_type])
        except StoreFailed as failure:
            refused = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))
            results |= {(topic.name, index): refused for topic, index in eligible}
    if request.topic_partitions is None:
        results = {key: refusal for key, refusal in results.items() if refusal != NOT_NEEDED}
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE if is_known else ErrorCode.INVALID_REQUEST,
        replica_election_results=_by_topic(results),
    )


def _partitions(node: Node, request: ElectLeadersRequest) -> list[tuple[str, int]]:
    if request.topic_partitions is None:
        return [(topic.name, state.index) for topic in node.topics for state in topic.partitions]
    return [(requested.topic, index) for requested in request.topic_partitions for index in requested.partitions]


def _refuse(
    node: Node, election: int, name: str, index: int, topic: Topic | None, state: PartitionState | None
) -> Refusal | None:
    """Return an error that does not depend on the partition's state, else None."""
    if election not in _ELECTIONS:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown election type {election}")
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if state is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    _, _, offline = availability(node, topic, state)
    return _NOT_AVAILABLE[election] if set(state.isr) <= set(offline) and state.leader != -1 else None


def _by_topic(results: Results) -> tuple[ReplicaElectionResult, ...]:
    by_topic: dict[str, list[PartitionResult]] = {}
    for (name, index), refusal in results.items():
        code, why = (ErrorCode.NONE, "") if refusal is None else (refusal.code, refusal.message)
        result = PartitionResult(partition_id=index, error_code=code, error_message=message(why) or None)
        by_topic.setdefault(name, []).append(result)
    return tuple(
        ReplicaElectionResult(topic=name, partition_result=tuple(partitions)) for name, partitions in by_topic.items()
    )
