from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World, answered
from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.create_partitions import create_partitions
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


def more(name: str, count: int, *assignment: tuple[int, ...]) -> CreatePartitionsTopic:
    placed = tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in assignment) or None
    return CreatePartitionsTopic(name=name, count=count, assignments=placed)


def send_request(
    world: World, *topics: CreatePartitionsTopic, validate_only: bool = False
) -> list[tuple[str, int, str | None]]:
    request = CreatePartitionsRequest(topics=topics, timeout_ms=1, validate_only=validate_only)
    results = answered(world.serve(create_partitions, request, 3)).results
    return [(result.name, result.error_code, result.error_message) for result in results]


@pytest.fixture
def world() -> World:
    world = World({"node.id": "0"})
    world.topic("t", 2)
    return world


def test_a_topic_grows_and_is_in_the_answer(world: World) -> None:
    assert send_request(world, more("t", 4)) == [("t", 0, None)]
    assert world.partition("t", 3).high_watermark == 0


def test_by_hand(world: World) -> None:
    assert send_request(world, more("t", 4, (0,), (0,))) == [("t", 0, None)]


def test_validation_alone_adds_nothing(world: World) -> None:
    assert send_request(world, more("t", 4), validate_only=True) == [("t", 0, None)]
    assert send_request(world, more("t", 2), validate_only=True)[0][1] == ErrorCode.INVALID_PARTITIONS
    assert world.node.partitions.get("t", 2) is None


@pytest.mark.parametrize(
    ("topic", "code", "why"),
    [
        (more("nope", 4), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
        (more("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            more("t", 1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            more("t", 4, (0,)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            more("t", 3, (7,)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
    ],
)
def test_invalid_requests_are_refused(world: World, topic: CreatePartitionsTopic, code: ErrorCode, why: str) -> None:
    assert send_request(world, topic) == [(topic.name, code, why)]


def test_an_invalid_topic_does_not_affect_the_others(world: World) -> None:
    world.topic("u", 1)
    results = send_request(world, more("nope", 1), more("t", 3), more("u", 2), more("u", 3))
    assert [(name, code) for name, code, _ in results] == [
        ("u", ErrorCode.INVALID_REQUEST),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0),
    ]


def test_the_offsets_topic_keeps_its_count() -> None:
    world = GroupWorld().open()
    ((_, code, _),) = send_request(world, more("__consumer_offsets", 60))
    assert code == ErrorCode.INVALID_REQUEST
