from __future__ import annotations

from tests.unit.coordinator.api.group_world import GroupWorld

from rota.coordinator.api.delete_groups import delete_groups
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_groups import DeleteGroupsRequest


def test_each_group_is_answered_for_itself() -> None:
    world = GroupWorld().open()
    world.member("stable")
    world.commit(7, "simple")
    request = DeleteGroupsRequest(groups_names=("simple", "stable", "none"))
    answer = world.send_request(delete_groups, request, 2)
    assert {result.group_id: result.error_code for result in answer.results} == {
        "simple": 0,
        "stable": ErrorCode.NON_EMPTY_GROUP,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }


def test_a_deleted_group_and_its_offsets_stay_deleted_after_a_restart() -> None:
    world = GroupWorld().open()
    world.commit(7, "simple")
    world.send_request(delete_groups, DeleteGroupsRequest(groups_names=("simple",)), 2)
    groups = world.node.groups
    for index in range(len(groups.shards)):
        groups.resign(index)
    for index in range(len(groups.shards)):
        groups.lead(index, 1)
    world.turn()
    assert not list(groups.machines())


def test_nothing_to_delete_is_answered_too() -> None:
    assert GroupWorld().open().send_request(delete_groups, DeleteGroupsRequest(groups_names=()), 1).results == ()


def test_a_group_named_twice_is_deleted_once() -> None:
    world = GroupWorld().open()
    world.commit(7, "simple")
    answer = world.send_request(delete_groups, DeleteGroupsRequest(groups_names=("simple", "simple")), 1)
    assert [(result.group_id, result.error_code) for result in answer.results] == [("simple", 0)]


def test_before_the_offsets_topic_exists_this_is_not_the_coordinator() -> None:
    answer = GroupWorld().send_request(delete_groups, DeleteGroupsRequest(groups_names=("g",)), 1)
    assert answer.results[0].error_code == ErrorCode.NOT_COORDINATOR
