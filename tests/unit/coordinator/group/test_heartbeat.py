"""Heartbeat: a conversation for each branch, by state."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.coordinator.group.script import (
    Script,
    arm,
    completing,
    dead,
    empty,
    heartbeat,
    join,
    join_refused,
    leave,
    preparing,
    refuse,
    rings,
    stable,
)

from rota.coordinator.group.effects import Body
from rota.coordinator.group.events import Heartbeat, InstanceId, MemberId
from rota.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("at", "answer"),
    [
        (completing, ErrorCode.NONE),
        (stable, ErrorCode.NONE),
        (preparing, ErrorCode.REBALANCE_IN_PROGRESS),
    ],
)
def test_a_member_hears_whether_it_has_to_join_again(at: Callable[..., Script], answer: ErrorCode) -> None:
    assert at("a") >> heartbeat(1, "a", 1) << refuse(1, answer)


@pytest.mark.parametrize("at", [completing, stable, preparing])
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (heartbeat(1, "x", 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (heartbeat(1, "", 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (heartbeat(1, "a", 1, instance="j"), ErrorCode.UNKNOWN_MEMBER_ID),
        (heartbeat(1, "a", 0), ErrorCode.ILLEGAL_GENERATION),
        (heartbeat(1, "a", 2), ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_stale_heartbeat_keeps_nobody_alive(at: Callable[..., Script], wrong: Heartbeat, error: ErrorCode) -> None:
    script = at("a").after(1)
    deadline_ms = script.group.members.by_id[MemberId("a")].deadline_ms
    assert script >> wrong << refuse(1, error)
    assert script.group.members.by_id[MemberId("a")].deadline_ms == deadline_ms


def test_a_fenced_member_is_told_so_only_when_it_names_its_instance() -> None:
    script = stable("a", instances=True)
    assert script >> heartbeat(1, "old", 1, instance="i-a") << refuse(1, ErrorCode.FENCED_INSTANCE_ID)
    assert script >> heartbeat(2, "old", 1) << refuse(2, ErrorCode.UNKNOWN_MEMBER_ID)
    assert script >> heartbeat(3, "a", 1, instance="i-a") << refuse(3, ErrorCode.NONE)


def test_nobody_is_alive_in_an_empty_group() -> None:
    assert empty() >> heartbeat(1, "a", 0) << refuse(1, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_dead_group_sends_its_members_to_look_for_its_coordinator() -> None:
    assert dead() >> heartbeat(1, "a", 0) << refuse(1, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_a_heartbeat_moves_the_deadline_and_no_timer() -> None:
    script = stable("a", "b").after(9_000)
    assert script >> heartbeat(1, "b", 1) << refuse(1, ErrorCode.NONE)
    assert script.after(1_000) >> rings("session:b") << arm("session:b", 19_000)


def test_the_direct_call_and_the_event_are_one() -> None:
    script = stable("a", instances=True)
    cases = [("a", None, 1), ("a", "i-a", 1), ("b", None, 1), ("b", "i-a", 1), ("a", "j", 1), ("a", None, 2)]
    for member, instance, generation in cases:
        body: Body = script.group.heartbeat(
            MemberId(member), None if instance is None else InstanceId(instance), generation, 5
        )
        assert script >> heartbeat(1, member, generation, instance=instance) << refuse(1, body)


def test_a_pending_member_is_no_member() -> None:
    script = Script().does(join(1, new="a", known=True))
    assert script >> heartbeat(2, "a", 0) << refuse(2, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_member_that_left_is_gone() -> None:
    assert stable("a", "b").does(leave(1, "b")) >> heartbeat(2, "b", 1) << refuse(2, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_heartbeat_of_a_member_that_waits_does_not_disturb_its_join() -> None:
    script = preparing("a", "b").does(join(1, "b"))
    assert script >> heartbeat(2, "b", 1) << refuse(2, ErrorCode.REBALANCE_IN_PROGRESS)
    assert script >> join(3, "b") << join_refused(1, ErrorCode.REBALANCE_IN_PROGRESS, "b")
