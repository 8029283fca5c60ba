"""Leaving: poll timeout and close, a conversation for each branch."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.group.script import (
    ENDED,
    POLL,
    POLL_MS,
    RETURNING,
    Done,
    Script,
    arm,
    breaks,
    cooperative,
    disarm,
    fires,
    heartbeat_reply,
    joined,
    joining,
    left,
    stable,
    synced,
    syncing,
)

from rota.client.group import notes
from rota.client.group.events import Close, CloseTimedOut
from rota.client.group.states import MemberState
from rota.protocol.errors import ErrorCode

S = MemberState
E = ErrorCode
NEXT = "cooperative-sticky"
CLOSE = Close("the consumer is being closed")
EXPIRED = "consumer poll timeout has expired."


# ---- who does not poll


def test_the_time_counts_from_when_the_user_gets_control() -> None:
    script = syncing().does(synced("t-0"), Done()).after(5)
    assert script >> RETURNING << arm("poll", 5 + POLL_MS)
    assert script >> POLL << disarm("poll")


def test_without_polls_the_member_leaves_and_loses_its_partitions_at_the_next_poll() -> None:
    script = stable().after(POLL_MS)
    assert script >> fires("poll") << ("leave", "a", EXPIRED) << disarm("heartbeat") << disarm("session") << ("wake",)
    script.is_in(S.DOWN, -1).emitted(notes.POLL_EXPIRED, max_poll_interval_ms=POLL_MS)
    assert script >> POLL << ("lose", "t-0")
    assert script >> Done() << ("join", "", "consumer pro-actively leaving the group")


def test_the_poll_interval_warning_names_the_settings() -> None:
    script = stable()
    _ = script >> fires("poll")
    script.out.clear()
    (note,) = [note for note in script.notes if note.level == "warning"]
    assert "Raise max_poll_interval_ms, or lower max_poll_records" in note.event


def test_a_static_member_that_does_not_poll_sends_nothing() -> None:
    script = stable(group_instance_id="i")
    _ = script >> fires("poll")
    script.lacks("leave").is_in(S.DOWN, -1)


def _shrunk() -> Script:
    """A static cooperative member of generation 2 whose assignment lacks t-1 of the t-0 and t-1 that it owns."""
    script = cooperative("t-0", "t-1", group_instance_id="i")
    script.does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, Done(), ENDED)
    return script.does(joined(2, protocol=NEXT), synced("t-0"))


def _returned(script: Script) -> Script:
    """The poll timeout expires, then the member is answered with generation 2 as it is, and takes t-0."""
    script.does(fires("poll"), POLL, Done()).does(joined(2, leader="a", skip=True, protocol=NEXT), synced("t-0"))
    return script.does(Done())


@pytest.mark.parametrize(
    "before",
    [
        (),  # the assignment waits for a poll
        (POLL, Done(), ENDED, Done()),  # t-1 is revoked; the next poll would join again
        (POLL, Done(), Done(), Done()),  # the JoinGroup is under way
    ],
    ids=["assignment not taken over", "revoked", "joining"],
)
def test_a_returning_static_member_rejoins_after_it_has_revoked_partitions(before: Any) -> None:
    script = _returned(_shrunk().does(*before))
    assert script.m.rejoin == "need to revoke partitions and re-join"
    _ = script >> Done()  # of the hook before it joins again
    script.includes(("join", "a", "need to revoke partitions and re-join"))


def test_a_static_member_that_returns_to_its_whole_assignment_does_not_join_again() -> None:
    script = cooperative("t-0", "t-1", group_instance_id="i").does(fires("poll"), POLL, Done())
    script.does(joined(1, leader="a", skip=True, protocol=NEXT), synced("t-0", "t-1"), Done(), ENDED)
    assert script.m.rejoin is None


def test_a_static_member_that_returns_to_a_new_generation_owes_nothing() -> None:
    script = _shrunk().does(fires("poll"), POLL, Done(), joined(3, protocol=NEXT), synced("t-0"), Done(), ENDED)
    assert script.m.rejoin is None


def test_a_joining_member_without_polls_leaves() -> None:
    script = joining().does(RETURNING)
    _ = script >> fires("poll")
    script.includes(("leave", "a", EXPIRED), ("drop", "join")).is_in(S.DOWN, -1)


def test_without_a_membership_no_leave_is_sent() -> None:
    assert Script() >> fires("poll")


def test_a_leave_is_sent_on_another_connection_than_joins() -> None:
    script = stable().does(fires("poll"))
    assert (script.requests["leave"].lane, script.requests["sync"].lane) == ("", "group")
    assert script.request("leave").group_id == "g"


def test_a_heartbeat_that_is_on_its_way_is_not_waited_for_when_it_leaves() -> None:
    script = stable().does(CLOSE, Done(), fires("heartbeat"))
    _ = script >> Done()
    script.includes(("drop", "heartbeat"))


def test_a_callback_that_takes_too_long_is_the_users_time() -> None:
    script = syncing().after(7).does(synced("t-0"))
    assert script.hook_ends_ms == 7 + POLL_MS
    _ = script >> fires("hook")
    script.includes(("leave", "a", EXPIRED)).is_in(S.DOWN, -1)
    assert script >> Done() << ("lose", "t-0")


def test_a_callback_that_ends_in_time_is_not_timed_any_more() -> None:
    script = syncing().does(synced("t-0"))
    assert script >> Done()
    assert script.hook_ends_ms is None
    script.is_in(S.STABLE, 1)


# ---- close


def test_a_member_commits_gives_up_and_leaves() -> None:
    script = stable()
    assert (
        script
        >> CLOSE
        << disarm("poll")
        << ("before_leaving",)
        >> Done()
        << ("revoke", "t-0")
        >> Done()
        << ("leave", "a", "the consumer is being closed")
        << disarm("heartbeat")
        << disarm("session")
        >> left()
    )
    script.is_in(S.CLOSED, 1).emitted(notes.LEFT, member="a")


def test_heartbeats_go_on_until_it_leaves() -> None:
    script = stable().does(CLOSE)
    _ = script >> fires("heartbeat")
    script.includes(("heartbeat", 1))
    script.does(heartbeat_reply(E.UNKNOWN_MEMBER_ID))
    assert script >> Done() << ("lose", "t-0") >> Done()
    script.is_in(S.CLOSED, -1)


def test_a_static_member_closes_without_leaving() -> None:
    script = stable(group_instance_id="i").does(CLOSE, Done())
    assert script >> Done() << disarm("heartbeat") << disarm("session")
    script.is_in(S.CLOSED, 1)


def test_closing_waits_for_the_callback_that_runs() -> None:
    script = syncing().does(synced("t-0"))
    assert script >> CLOSE
    assert script >> Done() << ("before_leaving",) >> Done() << ("revoke", "t-0")


@pytest.mark.parametrize("begin", [joining, syncing])
def test_closing_while_joining_leaves_at_once(begin: object) -> None:
    script = begin()
    waits = "join" if script.m.state is S.JOINING else "sync"
    _ = script >> CLOSE
    script.includes(("drop", waits), ("before_leaving",))
    _ = script >> Done()
    script.includes(("leave", "a", "the consumer is being closed"))
    script.does(left()).is_in(S.CLOSED, script.m.generation)


def test_partitions_owned_during_a_join_are_lost_on_close() -> None:
    script = cooperative().does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, Done(), CLOSE)
    assert script >> Done() << ("lose", "t-0")


def test_an_assignment_that_waits_is_not_taken_over_any_more() -> None:
    script = cooperative().does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, Done())
    script.does(joined(2, protocol="cooperative-sticky"), synced("t-1"), CLOSE)
    _ = script >> Done()
    script.lacks("assign")


def test_without_a_coordinator_no_leave_is_sent() -> None:
    script = stable().does(fires("heartbeat"), breaks("heartbeat"), CLOSE, Done())
    _ = script >> Done()
    script.lacks("leave").is_in(S.CLOSED, 1)


def test_a_member_that_never_joined_closes_at_once() -> None:
    assert Script() >> CLOSE << ("before_leaving",) >> Done()


@pytest.mark.parametrize("answer", [left(E.UNKNOWN_MEMBER_ID), breaks("leave")])
def test_a_leave_that_is_refused_closes_all_the_same(answer: object) -> None:
    script = stable().does(CLOSE, Done(), Done(), answer)
    script.is_in(S.CLOSED, 1).emitted(notes.NOT_LEFT)


def test_a_second_close_changes_nothing() -> None:
    script = stable().does(CLOSE)
    assert script >> Close("again")


# ---- out of time


def test_out_of_time_no_further_callback_runs() -> None:
    script = stable().does(CLOSE)
    assert script >> CloseTimedOut()
    _ = script >> Done()
    script.includes(("leave", "a", "the consumer is being closed")).is_in(S.LEAVING, 1)
    _ = script >> CloseTimedOut()
    script.is_in(S.CLOSED, 1)


def test_out_of_time_a_leave_that_is_on_its_way_has_a_moment_left() -> None:
    script = stable().does(CLOSE, Done(), Done())
    assert script >> CloseTimedOut()
    script.is_in(S.LEAVING, 1).does(left()).is_in(S.CLOSED, 1)


def test_after_the_end_nothing_happens() -> None:
    script = stable().does(CLOSE, Done(), Done(), left())
    for event in (POLL, RETURNING, fires("heartbeat"), CLOSE, CloseTimedOut()):
        assert script >> event


def test_a_close_timeout_is_ignored_unless_closing() -> None:
    assert stable() >> CloseTimedOut()
