"""Law T14: a request that changes topics with a timeout of 0 or less changes nothing, as in Apache Kafka 4.3.1."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.alter_partition_reassignments import alter_partition_reassignments
from rota.coordinator.api.create_partitions import create_partitions
from rota.coordinator.api.create_topics import create_topics
from rota.coordinator.api.delete_topics import delete_topics
from rota.coordinator.api.elect_leaders import elect_leaders
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from rota.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from rota.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from rota.protocol.wire import UUID_ZERO

OVER = int(ErrorCode.REQUEST_TIMED_OUT)
INVALID = int(ErrorCode.INVALID_REQUEST)
NO_TIME = pytest.mark.parametrize("timeout_ms", [0, -1])


def create(world: World, timeout_ms: int, *names: str) -> list[tuple[Any, ...]]:
    topics = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    reply = world.serve(create_topics, CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms), 7).value
    return [(topic.name, topic.error_code, topic.error_message) for topic in reply.topics]


def grow(world: World, timeout_ms: int, *names: str) -> list[tuple[Any, ...]]:
    topics = tuple(CreatePartitionsTopic(name=name, count=3) for name in names)
    reply = world.serve(create_partitions, CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms), 3).value
    return [(topic.name, topic.error_code, topic.error_message) for topic in reply.results]


def delete(world: World, timeout_ms: int, *named: tuple[str | None, bytes]) -> list[tuple[Any, ...]]:
    topics = tuple(DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in named)
    reply = world.serve(delete_topics, DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms), 6)
    results = getattr(reply, "value", reply).responses
    return [(topic.name, topic.error_code) for topic in results]


@NO_TIME
def test_nothing_is_created_and_each_topic_is_answered_as_it_was_named(timeout_ms: int) -> None:
    world = World()
    names = ("new", "in/valid", "twice", "twice", "__cluster_metadata")
    assert create(world, timeout_ms, *names) == [(name, OVER, None) for name in names]
    assert create(world, timeout_ms, "__consumer_offsets") == [("__consumer_offsets", OVER, None)]
    assert "new" not in world.node.topics


@NO_TIME
def test_no_partitions_are_added(timeout_ms: int) -> None:
    world = World()
    world.topic("old")
    assert grow(world, timeout_ms, "old", "none", "twice", "twice") == [
        (name, OVER, None) for name in ("old", "none", "twice", "twice")
    ]
    assert len(world.node.topics.get("old").partitions) == 1


@NO_TIME
def test_nothing_is_deleted(timeout_ms: int) -> None:
    world = World()
    world.topic("old")
    named = (("old", UUID_ZERO), ("none", UUID_ZERO), (None, b"1" * 16), (None, UUID_ZERO))
    assert delete(world, timeout_ms, *named) == [(name, OVER) for name, _ in named]
    assert "old" in world.node.topics


@NO_TIME
def test_what_can_be_refused_without_a_look_at_the_topics_is(timeout_ms: int) -> None:
    world = World()
    assert [result[:2] for result in create(world, timeout_ms, "twice", "twice")] == [("twice", INVALID)]
    assert [result[:2] for result in create(world, timeout_ms, "__cluster_metadata")] == [
        ("__cluster_metadata", INVALID)
    ]
    assert [result[:2] for result in grow(world, timeout_ms, "twice", "twice")] == [("twice", INVALID)]
    assert delete(world, timeout_ms, ("twice", UUID_ZERO), ("twice", UUID_ZERO)) == [("twice", INVALID)]
    assert delete(world, timeout_ms, ("both", b"1" * 16), (None, UUID_ZERO)) == [("both", INVALID), (None, INVALID)]


@NO_TIME
def test_no_leader_is_elected(timeout_ms: int) -> None:
    world = World()
    world.topic("old")

    def elect(named: tuple[TopicPartitions, ...] | None) -> tuple[int, list[tuple[int, int]]]:
        reply = world.serve(elect_leaders, ElectLeadersRequest(topic_partitions=named, timeout_ms=timeout_ms), 2)
        reply = getattr(reply, "value", reply)
        results = [result for topic in reply.replica_election_results for result in topic.partition_result]
        return reply.error_code, [(result.partition_id, result.error_code) for result in results]

    assert elect((TopicPartitions(topic="old", partitions=(0, 7)),)) == (OVER, [(0, OVER), (7, OVER)])
    assert elect(None) == (OVER, [])
    assert elect(()) == (0, [])


@NO_TIME
def test_no_replicas_are_moved(timeout_ms: int) -> None:
    world = World()
    world.topic("old")

    def move(*topics: ReassignableTopic) -> tuple[int, list[int]]:
        request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=timeout_ms)
        reply = world.serve(alter_partition_reassignments, request, 1)
        reply = getattr(reply, "value", reply)
        return reply.error_code, [result.error_code for topic in reply.responses for result in topic.partitions]

    partitions = tuple(ReassignablePartition(partition_index=index, replicas=(0,)) for index in (0, 9))
    assert move(ReassignableTopic(name="old", partitions=partitions)) == (OVER, [OVER, OVER])
    assert move() == (0, [])
