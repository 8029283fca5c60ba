"""Heartbeats, session timers and the timers of pending member ids."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.coordinator.group.script import (
    Script,
    arm,
    completing,
    dead,
    disarm,
    empty,
    fires,
    generation,
    heartbeat,
    join,
    join_refused,
    join_reply,
    leave,
    preparing,
    refuse,
    stable,
    stored,
    sync,
)

from rota.coordinator.group import notes
from rota.coordinator.group.effects import Body
from rota.coordinator.group.events import Heartbeat, InstanceId, MemberId
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("at", "answer"),
    [
        (completing, ErrorCode.NONE),
        (stable, ErrorCode.NONE),
        (preparing, ErrorCode.REBALANCE_IN_PROGRESS),
    ],
)
def test_the_heartbeat_response_says_whether_to_rejoin(at: Callable[..., Script], answer: ErrorCode) -> None:
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
def test_a_stale_heartbeat_does_not_extend_the_session(
    at: Callable[..., Script], wrong: Heartbeat, error: ErrorCode
) -> None:
    script = at("a").after(1)
    deadline_ms = script.group.members.by_id[MemberId("a")].deadline_ms
    assert script >> wrong << refuse(1, error)
    assert script.group.members.by_id[MemberId("a")].deadline_ms == deadline_ms


def test_a_fenced_member_gets_the_error_only_when_it_names_its_instance() -> None:
    script = stable("a", instances=True)
    assert script >> heartbeat(1, "old", 1, instance="i-a") << refuse(1, ErrorCode.FENCED_INSTANCE_ID)
    assert script >> heartbeat(2, "old", 1) << refuse(2, ErrorCode.UNKNOWN_MEMBER_ID)
    assert script >> heartbeat(3, "a", 1, instance="i-a") << refuse(3, ErrorCode.NONE)


def test_an_empty_group_has_no_live_members() -> None:
    assert empty() >> heartbeat(1, "a", 0) << refuse(1, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_dead_group_sends_its_members_to_look_for_its_coordinator() -> None:
    assert dead() >> heartbeat(1, "a", 0) << refuse(1, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_a_heartbeat_moves_the_deadline_and_no_timer() -> None:
    script = stable("a", "b").after(9_000)
    assert script >> heartbeat(1, "b", 1) << refuse(1, ErrorCode.NONE)
    assert script.after(1_000) >> fires("session:b") << arm("session:b", 19_000)


def test_the_direct_call_and_the_event_are_one() -> None:
    script = stable("a", instances=True)
    cases = [("a", None, 1), ("a", "i-a", 1), ("b", None, 1), ("b", "i-a", 1), ("a", "j", 1), ("a", None, 2)]
    for member, instance, number in cases:
        body: Body = script.group.heartbeat(
            MemberId(member), None if instance is None else InstanceId(instance), number, 5
        )
        assert script >> heartbeat(1, member, number, instance=instance) << refuse(1, body)


def test_a_pending_member_is_no_member() -> None:
    script = Script().does(join(1, new="a", known=True))
    assert script >> heartbeat(2, "a", 0) << refuse(2, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_member_that_left_is_removed() -> None:
    assert stable("a", "b").does(leave(1, "b")) >> heartbeat(2, "b", 1) << refuse(2, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_heartbeat_of_a_member_that_waits_does_not_disturb_its_join() -> None:
    script = preparing("a", "b").does(join(1, "b"))
    assert script >> heartbeat(2, "b", 1) << refuse(2, ErrorCode.REBALANCE_IN_PROGRESS)
    assert script >> join(3, "b") << join_refused(1, ErrorCode.REBALANCE_IN_PROGRESS, "b")


def test_a_member_that_is_silent_is_removed_when_its_session_ends() -> None:
    script = stable("a", "b").after(9_999)
    assert script >> fires("session:b") << arm("session:b", 10_000)
    assert script.after(1) >> fires("session:b") << arm("join", 70_000)
    script.is_in(GroupState.PREPARING, 1)
    script.emitted(notes.FAILED, member="b", reason="removing member b on heartbeat expiration.")


def test_the_rebalance_event_names_the_expired_member() -> None:
    script = stable("a", "b").after(10_000).does(fires("session:b"))
    script.emitted(notes.PREPARING, reason="removing member b on heartbeat expiration.", client_reason=None)


def test_the_last_session_that_ends_leaves_an_empty_group() -> None:
    script = stable("a").after(10_000)
    assert script >> fires("session:a") << disarm("join") << generation(2, 10_000)


def test_a_member_that_waits_with_its_join_is_alive() -> None:
    script = preparing("a", "b").does(join(1, "b")).after(50_000)
    assert script >> fires("session:b")
    script.is_in(GroupState.PREPARING, 1)


def test_the_session_restarts_when_the_join_is_answered() -> None:
    script = preparing("a", "b").does(join(1, "b")).after(50_000).does(fires("session:b"))
    (script >> join(2, "a")).includes(arm("session:b", 60_000))


def test_a_member_that_waits_with_its_sync_is_alive() -> None:
    script = completing("a", "b").does(sync(1, "b", 1)).after(50_000)
    assert script >> fires("session:b")
    (script >> sync(2, "a", 1, {})).includes(arm("session:b", 60_000))


def test_the_join_phase_ends_when_the_session_of_the_last_missing_member_expires() -> None:
    script = preparing("a").after(10_000)
    assert (
        script
        >> fires("session:a")
        << disarm("join")
        << generation(2, 10_000, stored("new"))
        << join_reply(-200, "new", 2, "new", ("new",))
        << arm("session:new", 20_000)
        << arm("sync", 70_000)
    )


def test_a_leader_that_dies_before_it_assigns_has_the_others_rebalance() -> None:
    script = completing("a", "b").does(sync(1, "b", 1)).after(10_000)
    bodies = (script >> fires("session:a")).bodies()
    assert list(bodies) == [1]
    script.is_in(GroupState.PREPARING, 1)


def test_a_new_member_is_kept_five_minutes_and_its_join_is_answered() -> None:
    script = Script().does(join(1, new="a", rebalance_ms=900_000))
    script.group.initial = None  # a long rebalance, not a first one
    assert (
        script.after(300_000)
        >> fires("session:a")
        << join_refused(1, ErrorCode.UNKNOWN_MEMBER_ID)
        << disarm("join")
        << generation(1, 300_000)
    )


def test_a_new_member_has_its_ordinary_session_once_it_was_answered() -> None:
    script = completing("a").after(10_000).does(fires("session:a"))
    script.is_in(GroupState.EMPTY, 2)


@pytest.mark.parametrize("key", ["session:x", "pending:x"])
def test_a_timer_of_a_removed_member_changes_nothing(key: str) -> None:
    for script in (Script(), stable("a")):
        assert script >> fires(key)


def test_a_member_id_that_never_joins_expires() -> None:
    script = Script().does(join(1, new="a", known=True)).after(10_000)
    assert script >> fires("pending:a")
    script.emitted(notes.PENDING_EXPIRED, member="a")
    assert not script.group.members.pending


def test_a_member_id_that_never_joins_stops_delaying_a_rebalance() -> None:
    script = preparing("a").does(join(1, new="b", known=True)).does(join(2, "a")).after(10_000)
    script.does(fires("pending:b")).is_in(GroupState.COMPLETING, 2)


def test_it_ends_even_the_initial_delay_as_in_kafka() -> None:
    script = Script().does(join(1, new="b", known=True)).does(join(2, new="a")).after(10_000)
    script.does(fires("pending:b")).is_in(GroupState.COMPLETING, 1)


def test_an_unknown_timer_key_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError):
        stable("a").does(fires("tea"))


def test_member_ids_may_contain_colons() -> None:
    script = stable("a:b", "c").after(10_000)
    script.does(fires("session:a:b")).is_in(GroupState.PREPARING, 1)


def test_a_heartbeat_does_not_cut_the_five_minutes_of_a_new_member_short() -> None:
    script = preparing("a").does(heartbeat(1, "new", 1)).after(10_000).does(heartbeat(2, "a", 1))
    assert script >> fires("session:new") << arm("session:new", 300_000)
