from __future__ import annotations

from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.heartbeat import heartbeat
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.heartbeat import HeartbeatRequest


def beat(world: GroupWorld, member_id: str, generation: int = 1, instance: str | None = None, group: str = "g") -> int:
    request = HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
    )
    return int(world.serve(heartbeat, request, 4).error_code)


def test_a_member_of_its_generation_is_alive() -> None:
    world = GroupWorld().open()
    assert beat(world, world.member().member_id) == ErrorCode.NONE


def test_a_heartbeat_restarts_the_session_timeout() -> None:
    world = GroupWorld().open()
    member = world.member()
    for _ in range(5):
        world.after(9_000)
        assert beat(world, member.member_id) == ErrorCode.NONE
    world.after(10_001)
    world.turn()
    assert beat(world, member.member_id) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_reports_a_rebalance() -> None:
    world = GroupWorld().open()
    member = world.member()
    world.join()
    assert beat(world, member.member_id) == ErrorCode.REBALANCE_IN_PROGRESS


def test_strangers_and_stale_generations_are_refused() -> None:
    world = GroupWorld().open()
    member = world.member()
    assert beat(world, "who") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(world, member.member_id, 0) == ErrorCode.ILLEGAL_GENERATION
    assert beat(world, member.member_id, group="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(world, member.member_id, instance="rack-7") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(world, member.member_id, group="") == ErrorCode.INVALID_GROUP_ID


def test_while_the_shard_loads_all_is_well() -> None:
    world = GroupWorld().open()
    member = world.member()
    shard = world.node.groups.ready("g")
    assert not isinstance(shard, ErrorCode)
    world.node.groups.resign(shard.index)
    assert beat(world, member.member_id) == ErrorCode.NOT_COORDINATOR
    world.node.groups.lead(shard.index, 1)
    assert beat(world, member.member_id) == ErrorCode.NONE
    world.turn()
    assert beat(world, member.member_id) == ErrorCode.NONE
