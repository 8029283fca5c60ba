from __future__ import annotations

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.api.data_world import World
from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.metadata import metadata
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from rota.protocol.wire import UUID_ZERO


def requested(*topics: str | bytes | None) -> tuple[MetadataRequestTopic, ...]:
    return tuple(
        MetadataRequestTopic(name=None, topic_id=topic)
        if isinstance(topic, bytes)
        else MetadataRequestTopic(name=topic)
        for topic in topics
    )


def send_request(
    world: World, topics: tuple[MetadataRequestTopic, ...] | None, version: int = 12, create: bool = False, **how: bool
) -> MetadataResponse:
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=create, **how)
    reply = world.serve(metadata, request, version)
    if isinstance(reply, DelayedReply):
        assert reply.answered
        reply = reply.value
    assert isinstance(reply, MetadataResponse)
    return reply


def codes(reply: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in reply.topics}


def test_the_cluster_is_this_broker() -> None:
    world = World({"node.id": "7", "broker.rack": "r1"})
    reply = send_request(world, ())
    (broker,) = reply.brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (7, "127.0.0.1", 9092, "r1")
    assert reply.controller_id == 7
    assert reply.cluster_id == world.node.topics.cluster_id != ""
    assert reply.topics == ()


def test_a_topic_by_name() -> None:
    world = World()
    topic = world.topic("t", 2)
    (found,) = send_request(world, requested("t")).topics
    assert (found.name, found.topic_id, found.is_internal, found.error_code) == ("t", topic.topic_id, False, 0)
    assert [(p.partition_index, p.leader_id, p.leader_epoch, p.replica_nodes) for p in found.partitions] == [
        (0, world.node.config.node_id, 0, (world.node.config.node_id,)),
        (1, world.node.config.node_id, 0, (world.node.config.node_id,)),
    ]
    assert all(p.isr_nodes == p.replica_nodes and p.offline_replicas == () for p in found.partitions)


def test_all_topics_and_none() -> None:
    world = World()
    world.topic("a")
    world.topic("b")
    assert set(codes(send_request(world, None, 1))) == {"a", "b"}
    assert set(codes(send_request(world, (), 0))) == {"a", "b"}
    assert send_request(world, (), 1).topics == ()


def test_topics_by_id() -> None:
    world = World()
    topic = world.topic("t")
    assert codes(send_request(world, requested(topic.topic_id, topic.topic_id))) == {"t": 0}
    (unknown,) = send_request(world, requested(b"x" * 16)).topics
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID)


def test_an_id_outweighs_names() -> None:
    world = World()
    topic = world.topic("t")
    world.topic("other")
    both = MetadataRequestTopic(name="other", topic_id=topic.topic_id)
    assert codes(send_request(world, (both, *requested("other")))) == {"t": 0}


@pytest.mark.parametrize(
    ("topic", "version"), [(b"x" * 16, 10), (b"x" * 16, 11), (None, 11), (None, 12), (UUID_ZERO, 13)]
)
def test_topic_ids_and_null_names_are_refused_by_version(topic: str | bytes | None, version: int) -> None:
    reply = send_request(World(), requested(topic), version)
    assert [topic.error_code for topic in reply.topics] == [ErrorCode.INVALID_REQUEST]
    assert reply.error_code == (ErrorCode.INVALID_REQUEST if version == 13 else 0)
    assert reply.brokers == ()


def test_unknown_and_wrong_names() -> None:
    world = World()
    world.topic("t")
    assert codes(send_request(world, requested("nope", "t", "a b", "nope", ""))) == {
        "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "t": 0,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert world.node.topics.names() == ["t"]


def test_a_missing_topic_is_created_and_returned_by_the_next_request() -> None:
    world = World({"num.partitions": "3"})
    world.topic("t")
    reply = send_request(world, requested("new", "t", "a b"), 9, create=True)
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    assert codes(reply) == {"new": unknown, "t": 0, "a b": invalid}
    assert reply.topics[0].partitions == ()
    assert world.partition("new", 2).high_watermark == 0
    again = send_request(world, requested("new"), 9, create=True)
    assert codes(again) == {"new": 0}
    assert len(again.topics[0].partitions) == 3


def test_creation_needs_the_broker_too() -> None:
    world = World({"auto.create.topics.enable": "false"})
    assert codes(send_request(world, requested("new"), 9, create=True)) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_md1_a_topic_that_needs_more_brokers_is_unknown_until_they_are_there() -> None:
    world = World({"default.replication.factor": "3"})
    assert codes(send_request(world, requested("new"), 9, create=True)) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_refused_auto_creation_returns_its_error() -> None:
    world = World()
    world.topic("a.b")
    assert codes(send_request(world, requested("a_b"), 9, create=True)) == {"a_b": ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_the_offsets_topic_is_created_with_its_own_partition_count() -> None:
    world = GroupWorld()
    for code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE):
        reply = send_request(world, requested("__consumer_offsets", "__transaction_state"), 9, create=True)
        assert codes(reply) == {"__consumer_offsets": code, "__transaction_state": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert all(topic.is_internal for topic in reply.topics)
    assert len(reply.topics[0].partitions) == 4


def test_authorized_operations_are_returned_on_request() -> None:
    world = World()
    world.topic("t")
    reply = send_request(
        world,
        requested("t", "nope"),
        9,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    assert [topic.topic_authorized_operations for topic in reply.topics] == [3576, 3576]
    assert reply.cluster_authorized_operations == 8096
    assert send_request(world, requested("t")).topics[0].topic_authorized_operations == -2147483648


def test_a_partition_whose_disk_failed_has_no_leader() -> None:
    world = World()
    world.topic("t", 2)
    with capture_logs():
        world.partition("t", 1).fail("disk")
    me = world.node.config.node_id
    partitions = send_request(world, requested("t")).topics[0].partitions
    assert [(p.error_code, p.leader_id, p.offline_replicas) for p in partitions] == [
        (0, me, ()),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1, (me,)),
    ]
