from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api.alter_partition_reassignments import alter_partition_reassignments
from rota.coordinator.api.list_partition_reassignments import list_partition_reassignments
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from rota.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


@pytest.fixture
def world() -> World:
    world = World({"node.id": "0"})
    world.topic("t", 2)
    return world


def send_request(world: World, name: str, index: int, replicas: tuple[int, ...] | None) -> tuple[int, str | None]:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    topic = ReassignableTopic(name=name, partitions=(partition,))
    request = AlterPartitionReassignmentsRequest(topics=(topic,), allow_replication_factor_change=False)
    reply = answered(world.serve(alter_partition_reassignments, request, 1))
    assert (reply.error_code, reply.allow_replication_factor_change) == (0, False)
    ((response,),) = (response.partitions for response in reply.responses)
    assert (reply.responses[0].name, response.partition_index) == (name, index)
    return response.error_code, response.error_message


@pytest.mark.parametrize("timeout_ms", [0, 60_000])
def test_a_request_without_topics_has_an_empty_message_as_in_kafka(world: World, timeout_ms: int) -> None:
    request = AlterPartitionReassignmentsRequest(topics=(), timeout_ms=timeout_ms)
    reply = answered(world.serve(alter_partition_reassignments, request, 1))
    assert (reply.error_code, reply.error_message, reply.responses) == (0, "", ())


def test_a_partition_may_stay_where_it_is(world: World) -> None:
    assert send_request(world, "t", 1, (0,)) == (0, None)


@pytest.mark.parametrize(
    ("name", "index", "replicas", "code"),
    [
        ("t", 0, (5,), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (0, 5), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (0, 0), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 2, (0,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, (0,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", 0, (0,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_invalid_requests_are_refused(
    world: World, name: str, index: int, replicas: tuple[int, ...] | None, code: ErrorCode
) -> None:
    refused, why = send_request(world, name, index, replicas)
    assert refused == code
    assert why


def test_a_reassignment_begins_is_listed_and_is_cancelled(world: World) -> None:
    world.register(0, 1, 2)
    assert send_request(world, "t", 1, (2, 0))[0] == ErrorCode.INVALID_REPLICATION_FACTOR
    assert send_request(world, "t", 1, (2,)) == (0, None)
    assert send_request(world, "t", 0, (1,)) == (0, None)
    assert listed(world) == [("t", 0, (1, 0), (1,), (0,)), ("t", 1, (2, 0), (2,), (0,))]
    assert listed(world, ListPartitionReassignmentsTopics(name="t", partition_indexes=(1, 7))) == [
        ("t", 1, (2, 0), (2,), (0,))
    ]
    assert send_request(world, "t", 0, None) == (0, None)
    assert send_request(world, "t", 0, None)[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert [entry[1] for entry in listed(world)] == [1]


def listed(world: World, *named: ListPartitionReassignmentsTopics) -> list[tuple[object, ...]]:
    request = ListPartitionReassignmentsRequest(topics=named or None)
    reply = world.serve(list_partition_reassignments, request, 0)
    return [
        (topic.name, entry.partition_index, entry.replicas, entry.adding_replicas, entry.removing_replicas)
        for topic in reply.topics
        for entry in topic.partitions
    ]
