"""Who is in the cluster, and elections."""

from __future__ import annotations

import pytest
from tests.unit.client.admin.conftest import Pair
from tests.unit.client.network.scripted import EVERYTHING, Scripted

from rota.client.admin.cluster_info import describe_cluster, elect_leaders
from rota.client.admin.requests import Deadline
from rota.client.config import ClientConfig
from rota.client.errors import AdminFailed, BrokerError
from rota.client.network.cluster import Cluster
from rota.client.network.metadata import BrokerInfo
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from rota.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

FIRST, SECOND, THIRD = (TopicPartition("a", number) for number in range(3))


async def test_brokers_come_in_order_with_their_racks(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    brokers = tuple(DescribeClusterBroker(broker_id=item, host="h", port=item, rack=f"r{item}") for item in (2, 1))
    for broker in pair.both:
        broker.on(
            DescribeClusterRequest,
            lambda _: DescribeClusterResponse(cluster_id="c", controller_id=2, brokers=brokers),
        )
    reply = await describe_cluster(cluster, deadline)
    assert (reply.cluster_id, reply.nodes) == ("c", (BrokerInfo(1, "h", 1, "r1"), BrokerInfo(2, "h", 2, "r2")))
    assert reply.controller == BrokerInfo(2, "h", 2, "r2")


async def test_an_error_code_is_raised(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    for broker in pair.both:
        broker.on(DescribeClusterRequest, lambda _: DescribeClusterResponse(cluster_id="", error_code=31))
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        await describe_cluster(cluster, deadline)


async def test_without_describe_cluster_metadata_is_used(deadline: Deadline) -> None:
    old = tuple(item for item in EVERYTHING if item.api_key != DescribeClusterRequest.KEY)
    async with Scripted(4, versions=old) as broker:
        cluster = Cluster(ClientConfig(bootstrap_servers=broker.address))
        await cluster.start()
        reply = await describe_cluster(cluster, deadline)
        await cluster.close()
    assert (reply.cluster_id, [node.id for node in reply.nodes], reply.controller) == ("scripted", [4], reply.nodes[0])


async def test_each_partition_has_its_own_election(pair: Pair, cluster: Cluster, deadline: Deadline) -> None:
    codes = [0, ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    results = tuple(PartitionResult(partition_id=number, error_code=code) for number, code in enumerate(codes))
    answer = ElectLeadersResponse(
        replica_election_results=(ReplicaElectionResult(topic="a", partition_result=results),)
    )
    pair.one.on(ElectLeadersRequest, lambda _: answer)
    with pytest.raises(AdminFailed, match=r"a-2.*first of the partition's replicas") as failed:
        await elect_leaders(cluster, [FIRST, SECOND, THIRD], deadline, unclean=False)
    assert failed.value.done == {FIRST: True, SECOND: False}
    (request,) = pair.requests(ElectLeadersRequest)[0]
    assert request.election_type == 0  # type: ignore[attr-defined]
    assert request.topic_partitions[0].partitions == (0, 1, 2)  # type: ignore[attr-defined]


async def test_an_error_for_the_whole_election_is_that_of_each_partition(
    pair: Pair, cluster: Cluster, deadline: Deadline
) -> None:
    pair.one.on(ElectLeadersRequest, lambda _: ElectLeadersResponse(error_code=31))
    with pytest.raises(AdminFailed) as failed:
        await elect_leaders(cluster, [FIRST, SECOND], deadline, unclean=True)
    assert list(failed.value.failed) == [FIRST, SECOND]
    assert await elect_leaders(cluster, [], deadline, unclean=True) == {}
