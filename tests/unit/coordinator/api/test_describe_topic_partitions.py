from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.describe_topic_partitions import describe_topic_partitions
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)

Seen = list[tuple[str | None, int, list[int]]]


def send_request(
    world: World, names: tuple[str, ...], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    reply = world.serve(describe_topic_partitions, request, 0)
    assert isinstance(reply, DescribeTopicPartitionsResponse)
    return reply


def seen(reply: DescribeTopicPartitionsResponse) -> Seen:
    return [(topic.name, topic.error_code, [p.partition_index for p in topic.partitions]) for topic in reply.topics]


def cursor_of(reply: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = reply.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.fixture
def world() -> World:
    world = World()
    world.topic("d", 3)
    world.topic("e", 2)
    return world


UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("names", "limit", "cursor", "page", "next_cursor"),
    [
        (("e", "d", "d"), 2000, None, [("d", 0, [0, 1, 2]), ("e", 0, [0, 1])], None),
        ((), 2000, None, [("d", 0, [0, 1, 2]), ("e", 0, [0, 1])], None),
        (("e", "d"), 2, None, [("d", 0, [0, 1])], ("d", 2)),
        (("e", "d"), 2, ("d", 2), [("d", 0, [2]), ("e", 0, [0])], ("e", 1)),
        (("e", "d"), 2, ("e", 1), [("e", 0, [1])], None),
        (("nope", "d"), 2000, None, [("d", 0, [0, 1, 2]), ("nope", UNKNOWN, [])], None),
        (("d",), 0, None, [("d", 0, [0])], ("d", 1)),
        (("d",), -1, None, [("d", 0, [0])], ("d", 1)),
        (("d",), 5, ("d", 9), [("d", 0, [])], None),
        (("d", "e"), 3, None, [("d", 0, [0, 1, 2])], ("e", 0)),
        (("zz", "d", "e"), 4, ("d", 1), [("d", 0, [1, 2]), ("e", 0, [0, 1])], ("zz", 0)),
        (("d", "dn", "e"), 4, None, [("d", 0, [0, 1, 2]), ("dn", UNKNOWN, []), ("e", 0, [0])], ("e", 1)),
        (("a b",), 9, None, [("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, [])], None),
        ((), 1, ("dd", 0), [("e", 0, [0])], ("e", 1)),
    ],
)
def test_pages_and_cursors_are_those_of_kafka(
    world: World,
    names: tuple[str, ...],
    limit: int,
    cursor: tuple[str, int] | None,
    page: Seen,
    next_cursor: tuple[str, int] | None,
) -> None:
    reply = send_request(world, names, limit, cursor)
    assert seen(reply) == page
    assert cursor_of(reply) == next_cursor
    assert all(topic.topic_authorized_operations == 3576 for topic in reply.topics)


@pytest.mark.parametrize("cursor", [("zzz", 0), ("d", -1), ("dd", 2)])
def test_a_wrong_cursor_refuses_all(world: World, cursor: tuple[str, int]) -> None:
    reply = send_request(world, ("d", "e"), 5, cursor)
    assert seen(reply) == [("d", ErrorCode.INVALID_REQUEST, []), ("e", ErrorCode.INVALID_REQUEST, [])]
    assert all(topic.topic_authorized_operations == -2147483648 for topic in reply.topics)


@given(st.integers(1, 7), st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_following_the_cursors_returns_every_partition_once(limit: int, counts: list[int]) -> None:
    world = World()
    for number, count in enumerate(counts):
        world.topic(f"t{number}", count)
    shown: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = None
    while True:
        reply = send_request(world, (), limit, cursor)
        page = [(topic.name, p.partition_index) for topic in reply.topics for p in topic.partitions]
        assert len(page) <= limit
        shown += page
        cursor = cursor_of(reply)
        if cursor is None:
            break
    assert shown == [(f"t{number}", index) for number, count in enumerate(counts) for index in range(count)]


def test_a_partition_whose_disk_failed_has_no_leader(world: World) -> None:
    with capture_logs():
        world.partition("d", 1).fail("disk")
    partition = send_request(world, ("d",)).topics[0].partitions[1]
    me = world.node.config.node_id
    assert (partition.error_code, partition.leader_id, partition.offline_replicas) == (
        ErrorCode.LEADER_NOT_AVAILABLE,
        -1,
        (me,),
    )
    assert (
        partition.replica_nodes,
        partition.isr_nodes,
        partition.eligible_leader_replicas,
        partition.last_known_elr,
    ) == (
        (me,),
        (me,),
        (),
        (),
    )


def test_a_partition_shows_its_eligible_leader_replicas(world: World) -> None:
    topic = world.topic("f")
    state = replace(topic.partitions[0], elr=(2, 3), version=topic.partitions[0].version + 1)
    world.node.topics.apply_states(topic.topic_id, [state])
    partition = send_request(world, ("f",)).topics[0].partitions[0]
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((2, 3), ())
