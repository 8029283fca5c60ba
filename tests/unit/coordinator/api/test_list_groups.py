from __future__ import annotations

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld, call, commit_request

from rota.coordinator.api.list_groups import EncodedGroups, codecs, list_groups
from rota.coordinator.api.offset_commit import offset_commit
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.compiler import codec
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def world_with_two() -> GroupWorld:
    world = GroupWorld().open()
    world.member("stable")
    world.commit(7, "simple")
    return world


def names(world: GroupWorld, version: int = 5, **filters: tuple[str, ...]) -> set[str]:
    return {group.group_id for group in world.send_request(list_groups, ListGroupsRequest(**filters), version).groups}


def test_every_group_is_listed_with_its_state_and_type() -> None:
    answer = world_with_two().send_request(list_groups, ListGroupsRequest(), 5)
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


@pytest.fixture
def long_list(monkeypatch: pytest.MonkeyPatch) -> GroupWorld:
    """35 groups, ten to a slice."""
    monkeypatch.setattr(f"{list_groups.__module__}.GROUPS_PER_SLICE", 10)
    world = GroupWorld().open()
    for number in range(35):
        world.commit(7, f"group-{number}")
    return world


def next_slice(world: GroupWorld) -> None:
    """Call what waits for the end of the turn, but not what that adds."""
    waiting, world.tick_queue[:] = list(world.tick_queue), []
    for each in waiting:
        each()


def test_lig1_a_long_list_is_collected_in_slices(long_list: GroupWorld) -> None:
    """Not the time is counted but the groups between two turns of the loop."""
    seen: list[str] = []

    def visible(group_id: str) -> bool:
        seen.append(group_id)
        return group_id != "group-7"

    reply = list_groups(long_list.node, call(5), ListGroupsRequest(), visible)
    counts = [len(seen)]
    assert isinstance(reply, DelayedReply)
    assert reply.mutes, "another list of this connection waits"
    while not reply.answered:
        next_slice(long_list)
        counts.append(len(seen))
    assert counts == [10, 20, 30, 35]
    assert reply.value is not None
    assert {each.group_id for each in reply.value.groups} == {f"group-{n}" for n in range(35)} - {"group-7"}


@pytest.mark.parametrize("version", range(6))
def test_lig1_the_entries_of_a_long_list_are_encoded_in_the_slices_and_as_ever(
    long_list: GroupWorld, version: int
) -> None:
    reply = long_list.serve(list_groups, ListGroupsRequest(), version)
    long_list.end_turn()
    listed = reply.value
    assert isinstance(listed.groups, EncodedGroups)
    plain, (_, encode) = codec(ListGroupsResponse, version), codecs(version)
    assert encode(listed) == plain.encode(ListGroupsResponse(groups=tuple(listed.groups)))
    assert encode(ListGroupsResponse(error_code=14)) == plain.encode(ListGroupsResponse(error_code=14))
    assert len(plain.decode(encode(listed))[0].groups) == 35


def test_lig1_groups_are_deleted_and_shards_load_between_two_slices(long_list: GroupWorld) -> None:
    groups = long_list.node.groups
    reply = long_list.serve(list_groups, ListGroupsRequest(), 5)
    last = [shard for shard in groups.shards if shard.machines][-1]
    removed, _ = last.machines.popitem()
    long_list.end_turn()
    assert removed not in {each.group_id for each in reply.value.groups}
    reply = long_list.serve(list_groups, ListGroupsRequest(), 5)
    groups.resign(last.index)
    groups.lead(last.index, 1)
    while not groups.load_slice():
        pass
    while not reply.answered:
        next_slice(long_list)
    assert not groups.is_loading
    assert reply.value.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "groups of the shard may be missing"


def test_lig1_nobody_collects_the_list_of_a_client_that_is_gone(long_list: GroupWorld) -> None:
    reply = long_list.serve(list_groups, ListGroupsRequest(), 5)
    reply.abandon()
    next_slice(long_list)
    assert reply.answered
    assert not long_list.tick_queue
