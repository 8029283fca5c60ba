from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from tests.unit.coordinator.api.group_world import GroupWorld, join_request

from rota.coordinator.api.join_group import join_group
from rota.coordinator.api.sync_group import sync_group
from rota.coordinator.group.waiting import assignment_of, park_join, park_sync
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


def request(member_id: str, generation: int = 1, **more: Any) -> SyncGroupRequest:
    return SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id, **more)


@pytest.mark.parametrize("version", range(5))
def test_a_member_of_a_stable_group_gets_its_assignment_again(version: int) -> None:
    world = GroupWorld().open()
    member = world.member()
    answer = world.send_request(sync_group, request(member.member_id), version)
    assert (answer.error_code, answer.assignment) == (0, b"all")


def test_version_5_compares_protocol_type_and_name() -> None:
    world = GroupWorld().open()
    member = world.member()
    accepted = {"protocol_type": "consumer", "protocol_name": "range"}
    answer = world.send_request(sync_group, request(member.member_id, **accepted), 5)
    assert (answer.error_code, answer.protocol_type, answer.protocol_name) == (0, "consumer", "range")
    wrong = world.send_request(sync_group, request(member.member_id, **{**accepted, "protocol_name": "sticky"}), 5)
    assert wrong.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    none = world.send_request(sync_group, request(member.member_id), 5)
    assert none.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_stale_generation_is_refused() -> None:
    world = GroupWorld().open()
    member = world.member()
    assert world.send_request(sync_group, request(member.member_id, 0), 3).error_code == ErrorCode.ILLEGAL_GENERATION


def test_a_member_id_is_unknown_with_and_without_a_group() -> None:
    world = GroupWorld().open()
    assert world.send_request(sync_group, request("who"), 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    world.member()
    assert world.send_request(sync_group, request("who"), 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_empty_group_id_is_refused() -> None:
    answer = (
        GroupWorld().open().send_request(sync_group, SyncGroupRequest(group_id="", generation_id=1, member_id="m"), 3)
    )
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_a_missing_protocol_is_reported_before_a_missing_group_id() -> None:
    nameless = SyncGroupRequest(group_id="", generation_id=1, member_id="m")
    assert GroupWorld().open().send_request(sync_group, nameless, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_too_large_assignment_is_refused_and_the_group_can_rebalance() -> None:
    world = GroupWorld({"message.max.bytes": "1000"}).open()
    joined = world.send_request(join_group, join_request(), 3)

    def assign(size: int, generation: int) -> SyncGroupRequest:
        part = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(size))
        return SyncGroupRequest(group_id="g", generation_id=generation, member_id=joined.member_id, assignments=(part,))

    assert world.send_request(sync_group, assign(1_000, 1), 3).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.send_request(join_group, join_request(member_id=joined.member_id), 3).generation_id == 2
    assert world.send_request(sync_group, assign(100, 2), 3).assignment == bytes(100)


def rebalances() -> tuple[list[object], bytes]:
    """The replies to all members of a group in three generations, and the bytes of the log."""
    world = GroupWorld().open()
    ids = [world.send_request(join_group, join_request(), 4).member_id for _ in range(4)]
    replies: list[object] = []
    for generation in range(1, 4):
        order = ids if generation == 1 else [ids[0], *reversed(ids[1:])]
        joins = [world.serve(join_group, join_request(member_id=each), 4) for each in order]
        for _ in range(4):
            world.turn()
        leader = joins[0].value.leader
        shares = tuple(SyncGroupRequestAssignment(member_id=each, assignment=each.encode()) for each in ids)
        late = [each for each in order if each != leader][-1]
        for each in [*(each for each in order if each not in (leader, late)), leader, late]:
            more = {"assignments": shares} if each == leader else {}
            joins.append(world.serve(sync_group, request(each, generation, **more), 4))
        world.turn()
        replies += [join.value if isinstance(join, DelayedReply) else join for join in joins]
    logs = [world.partition(CONSUMER_OFFSETS, index).log for index in range(4)]
    return replies, b"".join(log.read(0, 1 << 20) for log in logs)


def test_g4a_rebalances_without_events_are_those_of_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes, decided = [], []

    def counted(decide: Callable[..., object], *, by_events: bool) -> Callable[..., object]:
        def outcome(*arguments: object) -> object:
            decided.append(not by_events and decide(*arguments))
            return decided[-1] or None

        return outcome

    for by_events in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr("rota.coordinator.api.join_group.uuid4", map(UUID, map("{:032x}".format, count())).__next__)
            for module, decide in (("join", park_join), ("sync", park_sync), ("sync", assignment_of)):
                name = f"rota.coordinator.api.{module}_group.{decide.__name__}"
                patch.setattr(name, counted(decide, by_events=by_events))
            outcomes.append(rebalances())
    assert outcomes[0] == outcomes[1]
    assert all(reply.error_code == 0 for reply in outcomes[0][0])  # type: ignore[attr-defined]
    assert sum(map(bool, decided)) == 2 * 2 + 3 * 2  # joins in two rebalances, and syncs in three
