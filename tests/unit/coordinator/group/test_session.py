"""Timers of members: sessions, the five minutes of a new member, ids that nobody came back with (R28)."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.group.script import (
    Script,
    arm,
    completing,
    disarm,
    generation,
    heartbeat,
    join,
    join_refused,
    preparing,
    rings,
    stable,
    stored,
    sync,
    told,
)

from rota.coordinator.group import notes
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode


def test_a_member_that_is_silent_is_removed_when_its_session_ends() -> None:
    script = stable("a", "b").after(9_999)
    assert script >> rings("session:b") << arm("session:b", 10_000)
    assert script.after(1) >> rings("session:b") << arm("join", 70_000)
    script.is_in(GroupState.PREPARING, 1)
    script.said(notes.FAILED, member="b", reason="removing member b on heartbeat expiration.")


def test_the_rebalance_tells_that_a_session_ended() -> None:
    script = stable("a", "b").after(10_000).does(rings("session:b"))
    script.said(notes.PREPARING, reason="removing member b on heartbeat expiration.", client_reason=None)


def test_the_last_session_that_ends_leaves_an_empty_group() -> None:
    script = stable("a").after(10_000)
    assert script >> rings("session:a") << disarm("join") << generation(2, 10_000)


def test_a_member_that_waits_with_its_join_is_alive() -> None:
    script = preparing("a", "b").does(join(1, "b")).after(50_000)
    assert script >> rings("session:b")
    script.is_in(GroupState.PREPARING, 1)


def test_its_session_begins_anew_when_it_is_answered() -> None:
    script = preparing("a", "b").does(join(1, "b")).after(50_000).does(rings("session:b"))
    (script >> join(2, "a")).includes(arm("session:b", 60_000))


def test_a_member_that_waits_with_its_sync_is_alive() -> None:
    script = completing("a", "b").does(sync(1, "b", 1)).after(50_000)
    assert script >> rings("session:b")
    (script >> sync(2, "a", 1, {})).includes(arm("session:b", 60_000))


def test_a_member_that_does_not_come_to_a_rebalance_is_not_waited_for_when_its_session_ends() -> None:
    script = preparing("a").after(10_000)
    assert (
        script
        >> rings("session:a")
        << disarm("join")
        << generation(2, 10_000, stored("new"))
        << told(-200, "new", 2, "new", ("new",))
        << arm("session:new", 20_000)
        << arm("sync", 70_000)
    )


def test_a_leader_that_dies_before_it_assigns_has_the_others_rebalance() -> None:
    script = completing("a", "b").does(sync(1, "b", 1)).after(10_000)
    bodies = (script >> rings("session:a")).bodies()
    assert list(bodies) == [1]
    script.is_in(GroupState.PREPARING, 1)


def test_a_new_member_is_kept_five_minutes_and_its_join_is_answered() -> None:
    script = Script().does(join(1, new="a", rebalance_ms=900_000))
    script.group.initial = None  # a long rebalance, not a first one
    assert (
        script.after(300_000)
        >> rings("session:a")
        << join_refused(1, ErrorCode.UNKNOWN_MEMBER_ID)
        << disarm("join")
        << generation(1, 300_000)
    )


def test_a_new_member_has_its_ordinary_session_once_it_was_answered() -> None:
    script = completing("a").after(10_000).does(rings("session:a"))
    script.is_in(GroupState.EMPTY, 2)


@pytest.mark.parametrize("key", ["session:x", "pending:x"])
def test_a_timer_of_who_is_gone_changes_nothing(key: str) -> None:
    for script in (Script(), stable("a")):
        assert script >> rings(key)


def test_an_id_that_nobody_comes_back_with_is_forgotten() -> None:
    script = Script().does(join(1, new="a", known=True)).after(10_000)
    assert script >> rings("pending:a")
    script.said(notes.PENDING_EXPIRED, member="a")
    assert not script.group.members.pending


def test_an_id_that_nobody_comes_back_with_holds_a_rebalance_open_no_longer() -> None:
    script = preparing("a").does(join(1, new="b", known=True)).does(join(2, "a")).after(10_000)
    script.does(rings("pending:b")).is_in(GroupState.COMPLETING, 2)


def test_it_ends_even_the_initial_delay_as_in_kafka() -> None:
    script = Script().does(join(1, new="b", known=True)).does(join(2, new="a")).after(10_000)
    script.does(rings("pending:b")).is_in(GroupState.COMPLETING, 1)


def test_a_key_that_is_not_ours_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        stable("a").does(rings("tea"))


def test_member_ids_may_contain_colons() -> None:
    script = stable("a:b", "c").after(10_000)
    script.does(rings("session:a:b")).is_in(GroupState.PREPARING, 1)


def test_a_heartbeat_does_not_cut_the_five_minutes_of_a_new_member_short() -> None:
    script = preparing("a").does(heartbeat(1, "new", 1)).after(10_000).does(heartbeat(2, "a", 1))
    assert script >> rings("session:new") << arm("session:new", 300_000)
