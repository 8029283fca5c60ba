from __future__ import annotations

import pytest
from tests.unit.coordinator.api.group_world import SUBSCRIPTION, GroupWorld, commit_request

from rota.coordinator.api.describe_groups import describe_groups
from rota.coordinator.api.offset_commit import offset_commit
from rota.coordinator.security.operations import NOT_REQUESTED
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_groups import DescribeGroupsRequest


@pytest.mark.parametrize("version", range(7))
def test_a_stable_group_shows_its_members(version: int) -> None:
    world = GroupWorld().open()
    member = world.member()
    (group,) = world.send_request(describe_groups, DescribeGroupsRequest(groups=("g",)), version).groups
    assert (group.error_code, group.group_state) == (0, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (member.member_id, "test", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION, b"all")


@pytest.mark.parametrize("version", [0, 5])
def test_an_unknown_group_is_dead_and_no_error(version: int) -> None:
    world = GroupWorld().open()
    (group,) = world.send_request(describe_groups, DescribeGroupsRequest(groups=("none",)), version).groups
    assert (group.error_code, group.group_state, group.members) == (0, "Dead", ())


def test_from_version_6_on_an_unknown_group_is_an_error() -> None:
    world = GroupWorld().open()
    (group,) = world.send_request(describe_groups, DescribeGroupsRequest(groups=("none",)), 6).groups
    assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert "none" in group.error_message


def test_each_group_is_answered_for_itself() -> None:
    world = GroupWorld().open()
    world.commit(7, "simple")
    groups = world.send_request(describe_groups, DescribeGroupsRequest(groups=("simple", "", "none")), 5).groups
    assert [(group.group_id, group.error_code, group.group_state) for group in groups] == [
        ("simple", 0, "Empty"),
        ("", 0, "Dead"),
        ("none", 0, "Dead"),
    ]


def test_authorized_operations_are_returned_on_request_only() -> None:
    world = GroupWorld().open()
    world.member()
    request = DescribeGroupsRequest(groups=("g",), include_authorized_operations=True)
    assert world.send_request(describe_groups, request, 5).groups[0].authorized_operations == 3400
    unasked = DescribeGroupsRequest(groups=("g",))
    assert world.send_request(describe_groups, unasked, 5).groups[0].authorized_operations == NOT_REQUESTED


@pytest.mark.parametrize(("version", "operations"), [(5, 3400), (6, NOT_REQUESTED)])
def test_a_group_that_is_an_error_has_no_authorized_operations(version: int, operations: int) -> None:
    """CG25."""
    world = GroupWorld().open()
    request = DescribeGroupsRequest(groups=("none",), include_authorized_operations=True)
    assert world.send_request(describe_groups, request, version).groups[0].authorized_operations == operations


def test_a_description_waits_for_the_records_that_it_shows() -> None:
    """O1. A group that is not committed may be gone after a failover."""
    world = GroupWorld().open()
    world.serve(offset_commit, commit_request(7), 8)
    described = world.serve(describe_groups, DescribeGroupsRequest(groups=("none", "g")), 5)
    assert not described.answered
    world.turn()
    assert [group.group_state for group in described.value.groups] == ["Dead", "Empty"]
