from __future__ import annotations

from dataclasses import replace

from tests.unit.coordinator.api.group_world import GroupWorld, join_request

from rota.coordinator.api.consumer_group_heartbeat import consumer_group_heartbeat
from rota.coordinator.api.heartbeat import heartbeat
from rota.coordinator.api.join_group import join_group
from rota.protocol.consumer_protocol import Subscription, encode_subscription
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rota.protocol.messages.heartbeat import HeartbeatRequest
from rota.protocol.messages.join_group import JoinGroupRequestProtocol


def send_heartbeat(
    world: GroupWorld, member_id: str, generation: int = 1, instance: str | None = None, group: str = "g"
) -> int:
    request = HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
    )
    return int(world.serve(heartbeat, request, 4).error_code)


def test_a_member_of_its_generation_is_alive() -> None:
    world = GroupWorld().open()
    assert send_heartbeat(world, world.member().member_id) == ErrorCode.NONE


def test_a_heartbeat_restarts_the_session_timeout() -> None:
    world = GroupWorld().open()
    member = world.member()
    for _ in range(5):
        world.after(9_000)
        assert send_heartbeat(world, member.member_id) == ErrorCode.NONE
    world.after(10_001)
    world.turn()
    assert send_heartbeat(world, member.member_id) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_reports_a_rebalance() -> None:
    world = GroupWorld().open()
    member = world.member()
    world.join()
    assert send_heartbeat(world, member.member_id) == ErrorCode.REBALANCE_IN_PROGRESS


def test_unknown_members_and_stale_generations_are_refused() -> None:
    world = GroupWorld().open()
    member = world.member()
    assert send_heartbeat(world, "who") == ErrorCode.UNKNOWN_MEMBER_ID
    assert send_heartbeat(world, member.member_id, 0) == ErrorCode.ILLEGAL_GENERATION
    assert send_heartbeat(world, member.member_id, group="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert send_heartbeat(world, member.member_id, instance="rack-7") == ErrorCode.UNKNOWN_MEMBER_ID
    assert send_heartbeat(world, member.member_id, group="") == ErrorCode.INVALID_GROUP_ID


def test_while_the_shard_loads_all_is_well() -> None:
    world = GroupWorld().open()
    member = world.member()
    shard = world.node.groups.ready("g")
    assert not isinstance(shard, ErrorCode)
    world.node.groups.resign(shard.index)
    assert send_heartbeat(world, member.member_id) == ErrorCode.NOT_COORDINATOR
    world.node.groups.lead(shard.index, 1)
    assert send_heartbeat(world, member.member_id) == ErrorCode.NONE
    world.turn()
    assert send_heartbeat(world, member.member_id) == ErrorCode.NONE


def test_a_classic_member_of_a_consumer_group_is_alive_and_told_to_join_again() -> None:
    world = GroupWorld({"group.consumer.assignment.interval.ms": "0"}).open()
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    world.send_request(consumer_group_heartbeat, request, 1)
    protocols = (JoinGroupRequestProtocol(name="range", metadata=encode_subscription(Subscription(topics=("t",)))),)
    joined = world.send_request(join_group, join_request(protocols=protocols), 3)
    assert joined.error_code is ErrorCode.NONE

    def answer(member_id: str) -> ErrorCode:
        heartbeat_request = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=member_id)
        return ErrorCode(world.send_request(heartbeat, heartbeat_request, 4).error_code)

    assert answer(joined.member_id) is ErrorCode.NONE
    assert answer("a") is ErrorCode.UNKNOWN_MEMBER_ID
    world.send_request(consumer_group_heartbeat, replace(request, member_id="b"), 1)
    assert answer(joined.member_id) is ErrorCode.REBALANCE_IN_PROGRESS
