from __future__ import annotations

from tests.unit.coordinator.api.group_world import GroupWorld, commit_request

from rota.coordinator.api.list_groups import list_groups
from rota.coordinator.api.offset_commit import offset_commit
from rota.coordinator.runtime.routing import shard_of
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_groups import ListGroupsRequest


def world_with_two() -> GroupWorld:
    world = GroupWorld().open()
    world.member("stable")
    world.commit(7, "simple")
    return world


def names(world: GroupWorld, version: int = 5, **filters: tuple[str, ...]) -> set[str]:
    return {group.group_id for group in world.ask(list_groups, ListGroupsRequest(**filters), version).groups}


def test_every_group_is_listed_with_its_state_and_type() -> None:
    answer = world_with_two().ask(list_groups, ListGroupsRequest(), 5)
    assert {(group.group_id, group.protocol_type, group.group_state, group.group_type) for group in answer.groups} == {
        ("stable", "consumer", "Stable", "classic"),
        ("simple", "", "Empty", "classic"),
    }


def test_filters_by_state_and_type_ignore_case() -> None:
    world = world_with_two()
    assert names(world, states_filter=("STABLE",)) == {"stable"}
    assert names(world, states_filter=("Empty", "Stable")) == {"stable", "simple"}
    assert names(world, types_filter=("Classic",)) == {"stable", "simple"}
    assert names(world, types_filter=("consumer",)) == set()
    assert names(world, states_filter=("Nonsense",)) == set()


def test_while_a_shard_loads_the_list_would_be_wrong() -> None:
    world = world_with_two()
    world.node.groups.resign(0)
    world.node.groups.lead(0, 1)
    assert world.serve(list_groups, ListGroupsRequest(), 4).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.turn()
    assert names(world) == {"stable", "simple"}


def test_no_groups_are_listed_before_the_offsets_topic_exists() -> None:
    assert names(GroupWorld(), 0) == set()


def test_a_list_waits_for_the_records_that_it_shows() -> None:
    """O1."""
    world = GroupWorld().open()
    world.serve(offset_commit, commit_request(7, "new"), 8)
    listed = world.serve(list_groups, ListGroupsRequest(), 5)
    assert not listed.answered
    world.turn()
    assert [group.group_id for group in listed.value.groups] == ["new"]


def test_a_list_that_lacks_the_groups_of_a_shard_is_an_error() -> None:
    world = GroupWorld().open()
    world.serve(offset_commit, commit_request(7), 8)
    listed = world.serve(list_groups, ListGroupsRequest(), 5)
    world.node.groups.shards[shard_of("g", 4)].abandon(ErrorCode.NOT_COORDINATOR)
    assert (listed.value.error_code, listed.value.groups) == (ErrorCode.NOT_COORDINATOR, ())
