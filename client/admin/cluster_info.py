"""DescribeCluster and ElectLeaders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rota.client.admin.call_results import CallResults, ErrorContext, KeyResult, SentRequest
from rota.client.admin.requests import Deadline, request_with_retries
from rota.client.errors import BrokerError, Unsupported
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import BrokerInfo
from rota.client.network.targets import AnyNode, Controller
from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from rota.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from rota.protocol.messages.metadata import MetadataRequest

PREFERRED, UNCLEAN = 0, 1  # election types of ElectLeaders
UNCLEAN_VERSION: Final = 1  # of ElectLeaders
REMEDIES: Final = {
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "Start the broker that is the first of the partition's replicas.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Start a broker that is in sync, or, losing records, elect unclean.",
}


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster. `controller` is None when there is none, or when clients cannot connect to it."""

    cluster_id: str | None
    controller: BrokerInfo | None
    nodes: tuple[BrokerInfo, ...]


async def describe_cluster(cluster: Cluster, deadline: Deadline) -> ClusterDescription:
    """Return the description of the cluster, brokers sorted by id. Raises BrokerError, TimedOut."""
    try:
        answer = await cluster.send_request_until(
            AnyNode(),
            DescribeClusterRequest(),
            _error_codes,
            what="describing the cluster",
            timeout_ms=deadline.remaining_ms,
        )
    except Unsupported:
        return await _from_metadata(cluster, deadline)
    if answer.error_code:
        raise BrokerError(answer.error_code, "describing the cluster", detail=answer.error_message)
    nodes = [BrokerInfo(broker.broker_id, broker.host, broker.port, broker.rack) for broker in answer.brokers]
    return _description(answer.cluster_id, answer.controller_id, nodes)


async def elect_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition], deadline: Deadline, *, unclean: bool
) -> dict[TopicPartition, bool]:
    """Elect leaders. Returns for each partition whether an election was needed. Raises AdminFailed."""
    results = CallResults[TopicPartition, bool](
        "electing leaders", 43, partitions, lambda key: ErrorContext(*key), remedies=REMEDIES
    )

    def build(keys: Sequence[TopicPartition]) -> ElectLeadersRequest:
        topics = {topic: tuple(key.partition for key in keys if key.topic == topic) for topic, _ in keys}
        requested = tuple(TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in topics.items())
        kind = UNCLEAN if unclean else PREFERRED
        return ElectLeadersRequest(
            election_type=kind, topic_partitions=requested, timeout_ms=deadline.broker_timeout_ms
        )

    def read(
        sent: SentRequest[TopicPartition], answer: ElectLeadersResponse
    ) -> Iterable[KeyResult[TopicPartition, bool]]:
        for key in sent.keys if answer.error_code else ():
            yield KeyResult(key, answer.error_code, False)
        for topic in answer.replica_election_results:
            for result in topic.partition_result:
                key, needed = TopicPartition(topic.topic, result.partition_id), result.error_code != _NOT_NEEDED
                yield KeyResult(key, result.error_code if needed else 0, needed, result.error_message)

    if results.pending():
        version_min = UNCLEAN_VERSION if unclean else 0
        await request_with_retries(cluster, Controller(), results, build, read, deadline, version_min=version_min)
    return results.all_or_raise()


_NOT_NEEDED: Final = ErrorCode.ELECTION_NOT_NEEDED


async def _from_metadata(cluster: Cluster, deadline: Deadline) -> ClusterDescription:
    """Describe the cluster with a Metadata request, for brokers before Kafka 2.8."""
    answer = await cluster.send_request_until(
        AnyNode(),
        MetadataRequest(topics=(), allow_auto_topic_creation=False),
        lambda _: (),
        what="describing the cluster",
        timeout_ms=deadline.remaining_ms,
        version_min=1,
    )
    nodes = [BrokerInfo(broker.node_id, broker.host, broker.port, broker.rack) for broker in answer.brokers]
    return _description(answer.cluster_id, answer.controller_id, nodes)


def _error_codes(answer: DescribeClusterResponse) -> Iterable[int]:
    return (answer.error_code,)


def _description(cluster_id: str | None, controller: int, nodes: Iterable[BrokerInfo]) -> ClusterDescription:
    ordered = tuple(sorted(nodes, key=lambda node: node.id))
    return ClusterDescription(cluster_id, next((node for node in ordered if node.id == controller), None), ordered)
