"""Each answer is what Apache Kafka 4.3.1 gave to the same request."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.offset_for_leader_epoch import offset_for_leader_epoch
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


@pytest.fixture
def world() -> World:
    world = World()
    world.topic(partitions=2)
    world.append(b"a", b"b", b"c")
    return world


def send_request(world: World, epoch: int, index: int = 0, name: str = "t", current: int = -1) -> tuple[int, int, int]:
    partition = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=name, partitions=(partition,)),))
    response: Any = world.serve(offset_for_leader_epoch, request, 4)
    (topic,) = response.topics
    (end,) = topic.partitions
    assert (topic.topic, end.partition) == (name, index)
    return end.error_code, end.leader_epoch, end.end_offset


@pytest.mark.parametrize(
    ("how", "answer"),
    [
        ({"epoch": 0}, (0, 0, 3)),
        ({"epoch": 0, "current": 0}, (0, 0, 3)),
        ({"epoch": 1}, (0, -1, -1)),
        ({"epoch": -1}, (0, -1, -1)),
        ({"epoch": 0, "index": 1}, (0, 0, 0)),
        ({"epoch": 0, "current": 3}, (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)),
        ({"epoch": 0, "name": "nope"}, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)),
        ({"epoch": 0, "index": 9}, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)),
    ],
)
def test_where_epochs_ended(world: World, how: dict[str, Any], answer: tuple[int, int, int]) -> None:
    assert send_request(world, **how) == answer


def test_offline(world: World) -> None:
    world.partition().fail("the disk is gone")
    assert send_request(world, 0) == (ErrorCode.KAFKA_STORAGE_ERROR, -1, -1)
