from __future__ import annotations

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.leave_group import leave_group
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventType
from rota.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity


@pytest.mark.parametrize("version", range(3))
def test_one_member_leaves(version: int) -> None:
    world = GroupWorld().open()
    member = world.member()
    request = LeaveGroupRequest(group_id="g", member_id=member.member_id)
    assert world.send_request(leave_group, request, version).error_code == 0
    assert world.send_request(leave_group, request, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(3, 6))
def test_many_leave_at_once_and_each_is_answered(version: int) -> None:
    world = GroupWorld().open()
    member = world.member()
    leaving = (MemberIdentity(member_id=member.member_id, reason="closing"), MemberIdentity(member_id="who"))
    answer = world.send_request(leave_group, LeaveGroupRequest(group_id="g", members=leaving), version)
    assert answer.error_code == 0
    assert [(member.member_id, member.error_code) for member in answer.members] == [
        (member.member_id, 0),
        ("who", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


def test_members_of_an_unknown_group_are_unknown_member_id() -> None:
    world = GroupWorld().open()
    request = LeaveGroupRequest(group_id="none", members=(MemberIdentity(member_id="a"),))
    assert world.send_request(leave_group, request, 4).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    old = LeaveGroupRequest(group_id="none", member_id="a")
    assert world.send_request(leave_group, old, 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_reason_is_in_the_timeline() -> None:
    world = GroupWorld().open()
    leaving = (MemberIdentity(member_id=world.member().member_id, reason="the rack is moved"),)
    world.send_request(leave_group, LeaveGroupRequest(group_id="g", members=leaving), 5)
    events = world.node.groups.timelines.of("g")
    left = [event for event in events if event.type == EventType.MEMBER_LEFT]
    assert [event.client_reason for event in left] == ["the rack is moved"]


def test_an_empty_group_id_is_refused() -> None:
    answer = GroupWorld().open().send_request(leave_group, LeaveGroupRequest(group_id="", member_id="m"), 1)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
