from __future__ import annotations

from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.describe_quorum import describe_quorum
from rota.coordinator.api.node import Call
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
)


def send_request(world: World, name: str = "__cluster_metadata", index: int = 0) -> DescribeQuorumResponse:
    topic = QuorumTopic(topic_name=name, partitions=(QuorumPartition(partition_index=index),))
    reply = world.serve(describe_quorum, DescribeQuorumRequest(topics=(topic,)), 2)
    assert isinstance(reply, DescribeQuorumResponse)
    return reply


def test_a_lone_broker_is_a_quorum_of_one() -> None:
    world = World({"node.id": "3"})
    reply = send_request(world)
    partition = reply.topics[0].partitions[0]
    (voter,) = partition.current_voters
    assert (partition.error_code, partition.leader_id, voter.replica_id, partition.observers) == (0, 3, 3, ())
    assert partition.high_watermark == voter.log_end_offset > 0
    assert [(node.node_id, node.listeners[0].host, node.listeners[0].port) for node in reply.nodes] == [
        (3, "127.0.0.1", 9092)
    ]


def test_the_address_is_that_of_the_listener_of_the_request() -> None:
    call = Call(2, "test", "/127.0.0.1", "broker.example", 9094, listener="OUTSIDE")
    request = DescribeQuorumRequest(topics=(QuorumTopic(topic_name="__cluster_metadata"),))
    (node,) = describe_quorum(World().node, call, request).nodes
    assert [(each.name, each.host, each.port) for each in node.listeners] == [("OUTSIDE", "broker.example", 9094)]


def test_its_end_moves_with_the_metadata() -> None:
    world = World()
    before = send_request(world).topics[0].partitions[0].high_watermark
    world.topic("t")
    assert send_request(world).topics[0].partitions[0].high_watermark == before + 1


def test_other_partitions_are_unknown() -> None:
    for name, index in (("t", 0), ("__cluster_metadata", 1)):
        partition = send_request(World(), name, index).topics[0].partitions[0]
        assert (partition.error_code, partition.current_voters) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())
    assert send_request(World(), "t").nodes == ()
