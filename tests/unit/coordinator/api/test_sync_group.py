from __future__ import annotations

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld, join_request

from rota.coordinator.api.join_group import join_group
from rota.coordinator.api.sync_group import sync_group
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


def request(member_id: str, generation: int = 1, **more: str) -> SyncGroupRequest:
    return SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id, **more)


@pytest.mark.parametrize("version", range(5))
def test_a_member_of_a_stable_group_gets_its_assignment_again(version: int) -> None:
    world = GroupWorld().open()
    member = world.member()
    answer = world.ask(sync_group, request(member.member_id), version)
    assert (answer.error_code, answer.assignment) == (0, b"all")


def test_version_5_compares_protocol_type_and_name() -> None:
    world = GroupWorld().open()
    member = world.member()
    accepted = {"protocol_type": "consumer", "protocol_name": "range"}
    answer = world.ask(sync_group, request(member.member_id, **accepted), 5)
    assert (answer.error_code, answer.protocol_type, answer.protocol_name) == (0, "consumer", "range")
    wrong = world.ask(sync_group, request(member.member_id, **{**accepted, "protocol_name": "sticky"}), 5)
    assert wrong.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    none = world.ask(sync_group, request(member.member_id), 5)
    assert none.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_stale_generation_is_refused() -> None:
    world = GroupWorld().open()
    member = world.member()
    assert world.ask(sync_group, request(member.member_id, 0), 3).error_code == ErrorCode.ILLEGAL_GENERATION


def test_a_member_id_is_unknown_with_and_without_a_group() -> None:
    world = GroupWorld().open()
    assert world.ask(sync_group, request("who"), 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    world.member()
    assert world.ask(sync_group, request("who"), 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_empty_group_id_is_refused() -> None:
    answer = GroupWorld().open().ask(sync_group, SyncGroupRequest(group_id="", generation_id=1, member_id="m"), 3)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_a_missing_protocol_is_reported_before_a_missing_group_id() -> None:
    nameless = SyncGroupRequest(group_id="", generation_id=1, member_id="m")
    assert GroupWorld().open().ask(sync_group, nameless, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_too_large_assignment_is_refused_and_the_group_can_rebalance() -> None:
    world = GroupWorld({"message.max.bytes": "1000"}).open()
    joined = world.ask(join_group, join_request(), 3)

    def assign(size: int, generation: int) -> SyncGroupRequest:
        part = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(size))
        return SyncGroupRequest(group_id="g", generation_id=generation, member_id=joined.member_id, assignments=(part,))

    assert world.ask(sync_group, assign(1_000, 1), 3).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.ask(join_group, join_request(member_id=joined.member_id), 3).generation_id == 2
    assert world.ask(sync_group, assign(100, 2), 3).assignment == bytes(100)
