"""SyncGroup: a conversation for each branch, by state."""

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
    generation,
    given,
    join,
    preparing,
    rings,
    stable,
    stored,
    sync,
    sync_refused,
)

from rota.coordinator.group import notes
from rota.coordinator.group.events import Sync
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode


def test_the_leader_brings_the_assignment_and_everybody_gets_its_part_once_it_is_recorded() -> None:
    script = completing("a", "b")
    assert (
        script
        >> sync(1, "b", 1)
        >> sync(2, "a", 1, {"a": b"0", "b": b"1"})
        << disarm("sync")
        << generation(1, 0, stored("a", b"0"), stored("b", b"1"))
        << given(2, b"0")
        << given(1, b"1")
    )
    script.is_in(GroupState.STABLE, 1)
    script.said(notes.ASSIGNED, leader="a", generation=1, members=2, static_members=0)


def test_a_session_begins_anew_with_the_assignment() -> None:
    script = completing("a", "b").does(sync(1, "b", 1)).after(9_000).does(sync(2, "a", 1, {}))
    assert script.after(1_000) >> rings("session:b") << arm("session:b", 19_000)


def test_the_count_of_static_members_is_told() -> None:
    script = completing("a", "b", instances=True)
    assert (
        script
        >> sync(1, "a", 1, {"a": b"0"})
        << generation(1, 0, stored("a", b"0", instance="i-a"), stored("b", instance="i-b"))
        << given(1, b"0")
    )
    script.said(notes.ASSIGNED, members=2, static_members=2)


def test_whom_the_leader_forgot_gets_an_empty_part_and_whom_it_invented_nothing() -> None:
    script = completing("a", "b").does(sync(1, "b", 1))
    assert (
        script
        >> sync(2, "a", 1, {"a": b"0", "x": b"9"})
        << disarm("sync")
        << generation(1, 0, stored("a", b"0"), stored("b", b""))
        << given(2, b"0")
        << given(1, b"")
    )


def test_a_follower_brings_no_assignment() -> None:
    script = completing("a", "b")
    assert script >> sync(1, "b", 1, {"a": b"0", "b": b"1"})
    script.is_in(GroupState.COMPLETING, 1)


def test_a_follower_that_comes_late_gets_the_stored_part() -> None:
    script = completing("a", "b").does(sync(1, "a", 1, {"a": b"0", "b": b"1"}))
    assert script >> sync(2, "b", 1) << disarm("sync") << given(2, b"1")


def test_in_stable_the_stored_part_is_given_again() -> None:
    assert stable("a", "b") >> sync(1, "b", 1) << given(1, b"B") >> sync(2, "b", 1) << given(2, b"B")


def test_in_stable_a_leader_cannot_change_the_assignment_of_a_generation() -> None:
    assert stable("a") >> sync(1, "a", 1, {"a": b"other"}) << given(1, b"A")


def test_in_preparing_the_members_are_sent_to_join() -> None:
    assert preparing("a") >> sync(1, "a", 1) << sync_refused(1, ErrorCode.REBALANCE_IN_PROGRESS)


def test_a_sync_that_comes_again_supersedes_the_one_that_waits() -> None:
    script = completing("a", "b")
    assert (
        script
        >> sync(1, "b", 1)
        >> sync(2, "b", 1)
        << sync_refused(1, ErrorCode.REBALANCE_IN_PROGRESS)
        >> sync(3, "a", 1, {"b": b"1"})
        << disarm("sync")
        << generation(1, 0, stored("a"), stored("b", b"1"))
        << given(3, b"")
        << given(2, b"1")
    )


def test_parked_syncs_are_answered_when_a_rebalance_begins_and_nothing_stays_assigned() -> None:
    script = completing("a", "b", "c").does(sync(1, "b", 1)).does(sync(2, "c", 1))
    assert (
        script
        >> join(3, new="d")
        << arm("session:d", 300_000)
        << sync_refused(1, ErrorCode.REBALANCE_IN_PROGRESS)
        << sync_refused(2, ErrorCode.REBALANCE_IN_PROGRESS)
        << disarm("sync")
        << arm("join", 60_000)
    )


STALE = [
    (sync(1, "x", 1), ErrorCode.UNKNOWN_MEMBER_ID),
    (sync(1, "", 1), ErrorCode.UNKNOWN_MEMBER_ID),
    (sync(1, "a", 1, instance="j"), ErrorCode.UNKNOWN_MEMBER_ID),
    (sync(1, "a", 0), ErrorCode.ILLEGAL_GENERATION),
    (sync(1, "a", 2), ErrorCode.ILLEGAL_GENERATION),
    (sync(1, "a", -1), ErrorCode.ILLEGAL_GENERATION),
    (sync(1, "a", 1, protocol_type="connect"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    (sync(1, "a", 1, protocol="roundrobin"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
]


@pytest.mark.parametrize(("wrong", "error"), STALE)
@pytest.mark.parametrize("at", [completing, stable, preparing])
def test_a_stale_sync_changes_nothing(at: Callable[..., Script], wrong: Sync, error: ErrorCode) -> None:
    script = at("a")
    before = (script.group.state, script.group.hard)
    assert script >> wrong << sync_refused(1, error)
    assert (script.group.state, script.group.hard) == before


def test_the_right_protocol_may_be_named() -> None:
    assert stable("a") >> sync(1, "a", 1, protocol_type="consumer", protocol="range") << given(1, b"A")


def test_a_fenced_member_gets_no_part() -> None:
    script = stable("a", instances=True)
    assert script >> sync(1, "old", 1, instance="i-a") << sync_refused(1, ErrorCode.FENCED_INSTANCE_ID)
    script.said(notes.FENCED, member="old", holder="a", operation="sync-group")


def test_an_empty_group_has_no_members_to_sync() -> None:
    assert empty() >> sync(1, "a", 0) << sync_refused(1, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_dead_group_sends_its_members_to_look_for_its_coordinator() -> None:
    assert dead() >> sync(1, "a", 0) << sync_refused(1, ErrorCode.COORDINATOR_NOT_AVAILABLE)
