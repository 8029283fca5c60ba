"""LeaveGroup: a conversation for each branch, by state; single and batch."""

from __future__ import annotations

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
    identity,
    join,
    join_refused,
    join_reply,
    leave,
    preparing,
    refuse,
    reply,
    stable,
    stored,
    sync,
    sync_refused,
)

from rota.coordinator.group import notes
from rota.coordinator.group.effects import LeaveResult, Reply, Synced
from rota.coordinator.group.events import InstanceId, Leave, MemberId, Token
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

OK, UNKNOWN, FENCED = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID


def left(token: int, *members: tuple[str, str | None, ErrorCode]) -> Reply:
    answers = tuple(
        (MemberId(member), None if instance is None else InstanceId(instance), error)
        for member, instance, error in members
    )
    return reply(token, LeaveResult(ErrorCode.NONE, answers))


def test_in_stable_the_others_rebalance() -> None:
    script = stable("a", "b")
    assert (
        script
        >> leave(1, "b", reason="closed")
        << disarm("session:b")
        << arm("join", 60_000)
        << left(1, ("b", None, OK))
    )
    script.is_in(GroupState.PREPARING, 1)
    reason = "explicit `LeaveGroup` request for (b) members."
    script.emitted(notes.PREPARING, reason=reason, client_reason="closed", generation=1)


def test_the_reason_of_each_leaver_is_logged() -> None:
    script = stable("a", "b").does(join(1, new="c"))
    assert script >> leave(2, "b", reason="closed") << disarm("session:b") << left(2, ("b", None, OK))
    script.emitted(notes.LEFT, member="b", client_reason="closed", state="PreparingRebalance")


def test_when_the_last_member_leaves_the_empty_group_has_a_new_generation() -> None:
    script = stable("a").after(5)
    assert (
        script >> leave(1, "a") << disarm("session:a") << disarm("join") << generation(2, 5) << left(1, ("a", None, OK))
    )
    script.is_in(GroupState.EMPTY, 2).emitted(notes.NOW_EMPTY, generation=2)


def test_in_completing_the_parked_syncs_are_answered_and_the_others_rebalance() -> None:
    script = completing("a", "b", "c").does(sync(1, "b", 1)).does(sync(2, "c", 1))
    assert (
        script
        >> leave(3, "c")
        << sync_refused(2, UNKNOWN)
        << disarm("session:c")
        << sync_refused(1, ErrorCode.REBALANCE_IN_PROGRESS)
        << disarm("sync")
        << arm("join", 60_000)
        << left(3, ("c", None, OK))
    )


def test_a_member_that_leaves_while_its_sync_waits_is_answered() -> None:
    script = completing("a", "b").does(sync(1, "b", 1))
    assert (script >> leave(2, "b")).bodies()[1] == Synced(error=UNKNOWN)


def test_in_preparing_the_last_that_was_missing_ends_the_join_phase() -> None:
    script = preparing("a")
    assert (
        script
        >> leave(1, "a")
        << disarm("session:a")
        << disarm("join")
        << generation(2, 0, stored("new"))
        << join_reply(-200, "new", 2, "new", ("new",))
        << arm("session:new", 10_000)
        << arm("sync", 60_000)
        << left(1, ("a", None, OK))
    )


def test_in_preparing_while_others_are_missing_nothing_ends() -> None:
    assert preparing("a", "b") >> leave(1, "b") << disarm("session:b") << left(1, ("b", None, OK))


def test_a_member_that_leaves_while_its_join_waits_is_answered() -> None:
    script = preparing("a", "b")
    assert (
        script >> leave(1, "new") << join_refused(-200, UNKNOWN) << disarm("session:new") << left(1, ("new", None, OK))
    )


def test_the_initial_delay_is_waited_out_though_its_only_member_leaves() -> None:
    script = Script().does(join(1, new="a"))
    assert script >> leave(2, "a") << join_refused(1, UNKNOWN) << disarm("session:a") << left(2, ("a", None, OK))
    assert script.is_in(GroupState.PREPARING, 0) >> fires("join") << generation(1, 0)
    script.is_in(GroupState.EMPTY, 1)


def test_a_pending_member_leaves_an_empty_group_as_it_was() -> None:
    script = Script().does(join(1, new="a", known=True))
    assert script >> leave(2, "a") << disarm("pending:a") << left(2, ("a", None, OK))
    script.is_in(GroupState.EMPTY, 0).emitted(notes.PENDING_LEFT, member="a")


def test_a_pending_member_that_leaves_a_stable_group_has_it_rebalance_as_in_kafka() -> None:
    script = stable("a").does(join(1, new="b", known=True))
    assert script >> leave(2, "b") << disarm("pending:b") << arm("join", 60_000) << left(2, ("b", None, OK))


def test_a_pending_member_that_leaves_ends_a_join_phase_that_waited_for_it() -> None:
    script = preparing("a").does(join(1, new="b", known=True)).does(join(2, "a")).does(leave(3, "b"))
    script.is_in(GroupState.COMPLETING, 2)


def test_an_administrator_removes_by_instance() -> None:
    script = stable("a", "b", instances=True)
    event = Leave(Token(1), (identity("", "i-b"), identity("", "i-x"), identity("", None)))
    assert (
        script
        >> event
        << disarm("session:b")
        << arm("join", 60_000)
        << left(1, ("", "i-b", OK), ("", "i-x", UNKNOWN), ("", None, UNKNOWN))
    )


def test_a_batch_of_leaves_has_one_result_per_member_and_one_rebalance() -> None:
    script = stable("a", "b", "c", instances=True)
    event = Leave(
        Token(1),
        (
            identity("b", None),
            identity("b", "i-b"),
            identity("x", None),
            identity("x", "i-c"),
            identity("c", "i-c"),
            identity("a", "j"),
        ),
    )
    assert (
        script
        >> event
        << disarm("session:b")
        << disarm("session:c")
        << arm("join", 60_000)
        << left(
            1,
            ("b", None, OK),
            ("b", "i-b", UNKNOWN),
            ("x", None, UNKNOWN),
            ("x", "i-c", FENCED),
            ("c", "i-c", OK),
            ("a", "j", UNKNOWN),
        )
    )
    script.emitted(notes.PREPARING, reason="explicit `LeaveGroup` request for (b, c) members.")


@pytest.mark.parametrize("script", [stable("a"), completing("a"), empty(), preparing("a")])
def test_an_unknown_member_that_leaves_changes_nothing(script: Script) -> None:
    before = script.group.state
    assert script >> leave(1, "x") << left(1, ("x", None, UNKNOWN))
    assert script.group.state is before


def test_a_leave_with_an_empty_list_removes_no_member() -> None:
    assert stable("a") >> leave(1) << left(1)


def test_a_dead_group_sends_its_members_to_look_for_its_coordinator() -> None:
    assert dead() >> leave(1, "a") << refuse(1, LeaveResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))


def test_when_the_leader_leaves_the_next_leads() -> None:
    script = stable("a", "b", "c").does(leave(1, "a")).does(join(2, "c"))
    assert (
        script
        >> join(3, "b")
        << disarm("join")
        << generation(2, 0, stored("b"), stored("c"))
        << join_reply(3, "b", 2, "b", ("b", "c"))
        << join_reply(2, "c", 2, "b")
        << arm("sync", 60_000)
    )
