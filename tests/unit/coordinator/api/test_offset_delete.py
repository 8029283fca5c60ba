from __future__ import annotations

from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.offset_delete import offset_delete
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)


def request(group_id: str = "g", topic: str = "t", *partitions: int) -> OffsetDeleteRequest:
    parts = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in partitions or (0,))
    return OffsetDeleteRequest(group_id=group_id, topics=(OffsetDeleteRequestTopic(name=topic, partitions=parts),))


def codes(answer: object) -> list[tuple[int, int]]:
    return [(partition.partition_index, partition.error_code) for partition in answer.topics[0].partitions]  # type: ignore[attr-defined]


def test_offsets_of_an_empty_group_may_go() -> None:
    world = GroupWorld().open()
    world.commit(7)
    world.commit(8, partition=1)
    assert codes(world.send_request(offset_delete, request("g", "t", 0, 2, 9), 0)) == [
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, 0),
        (2, 0),
    ]
    shard = world.node.groups.ready("g")
    assert not isinstance(shard, ErrorCode)
    assert list(shard.machines["g"].offsets) == [("t", 1)]


def test_a_subscribed_topic_keeps_its_offsets() -> None:
    world = GroupWorld().open()
    world.member()
    assert codes(world.send_request(offset_delete, request(), 0)) == [(0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)]


def test_offsets_of_an_unsubscribed_topic_can_be_deleted_while_the_group_is_active() -> None:
    world = GroupWorld().open()
    world.topic("other")
    world.member()
    assert codes(world.send_request(offset_delete, request("g", "other"), 0)) == [(0, 0)]


def test_unknown_and_unnamed_groups() -> None:
    world = GroupWorld().open()
    assert world.send_request(offset_delete, request("none"), 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.send_request(offset_delete, request(""), 0).error_code == ErrorCode.INVALID_GROUP_ID
