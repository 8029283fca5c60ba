"""SyncGroup: a conversation for each branch, by state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st
from tests.unit.coordinator.group.script import (
    Script,
    arm,
    completing,
    dead,
    disarm,
    empty,
    fires,
    generation,
    given,
    join,
    preparing,
    stable,
    stored,
    sync,
    sync_refused,
)

from rota.coordinator.group import notes
from rota.coordinator.group.effects import GroupRecord, Synced
from rota.coordinator.group.events import MemberId, Proto, Sync
from rota.coordinator.group.machine import Group
from rota.coordinator.group.members import member_of
from rota.coordinator.group.records import encode
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import BATCH_HEADER_BYTES

RECORD_OVERHEAD_BYTES = 15  # of one record in a batch: attributes, deltas and lengths


def test_members_get_their_assignments_once_they_are_recorded() -> None:
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
    script.emitted(notes.ASSIGNED, leader="a", generation=1, members=2, static_members=0)


def test_the_session_restarts_with_the_assignment() -> None:
    script = completing("a", "b").does(sync(1, "b", 1)).after(9_000).does(sync(2, "a", 1, {}))
    assert script.after(1_000) >> fires("session:b") << arm("session:b", 19_000)


def test_the_count_of_static_members_is_logged() -> None:
    script = completing("a", "b", instances=True)
    assert (
        script
        >> sync(1, "a", 1, {"a": b"0"})
        << generation(1, 0, stored("a", b"0", instance="i-a"), stored("b", instance="i-b"))
        << given(1, b"0")
    )
    script.emitted(notes.ASSIGNED, members=2, static_members=2)


def test_a_member_without_an_assignment_gets_an_empty_one_and_unknown_members_are_ignored() -> None:
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


def test_a_late_follower_gets_the_stored_assignment() -> None:
    script = completing("a", "b").does(sync(1, "a", 1, {"a": b"0", "b": b"1"}))
    assert script >> sync(2, "b", 1) << disarm("sync") << given(2, b"1")


def test_in_stable_the_stored_part_is_given_again() -> None:
    assert stable("a", "b") >> sync(1, "b", 1) << given(1, b"B") >> sync(2, "b", 1) << given(2, b"B")


def test_in_stable_a_leader_cannot_change_the_assignment_of_a_generation() -> None:
    assert stable("a") >> sync(1, "a", 1, {"a": b"other"}) << given(1, b"A")


def test_in_preparing_the_members_are_sent_to_join() -> None:
    assert preparing("a") >> sync(1, "a", 1) << sync_refused(1, ErrorCode.REBALANCE_IN_PROGRESS)


def test_a_repeated_sync_replaces_the_waiting_sync() -> None:
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
    script.emitted(notes.FENCED, member="old", holder="a", operation="sync-group")


def test_an_empty_group_has_no_members_to_sync() -> None:
    assert empty() >> sync(1, "a", 0) << sync_refused(1, ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_dead_group_sends_its_members_to_look_for_its_coordinator() -> None:
    assert dead() >> sync(1, "a", 0) << sync_refused(1, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_an_assignment_that_makes_the_record_too_large_is_nobodys() -> None:
    """CO3. As in Kafka everybody who waits is join_reply, and the group rebalances."""
    script = completing("a", "b", config=GroupConfig(initial_rebalance_delay_ms=0, record_bytes_max=1_000))
    before = script.group.hard
    script.does(sync(1, "b", 1))
    answers = (script >> sync(2, "a", 1, {"a": bytes(500), "b": bytes(500)})).bodies()
    assert answers == {token: Synced(error=ErrorCode.UNKNOWN_SERVER_ERROR) for token in (1, 2)}
    script.emitted(notes.PREPARING, client_reason=None)
    assert script.is_in(GroupState.PREPARING, 1).group.hard is before
    assert not any(member.assignment for member in script.group.members)
    script.does(join(3, "a")).does(join(4, "b")).is_in(GroupState.COMPLETING, 2)
    script.does(sync(5, "b", 2))
    assert (script >> sync(6, "a", 2, {"a": b"1"})).bodies()[6] == Synced(
        protocol_type="consumer", protocol="range", assignment=b"1"
    )


@given_any(st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=60), st.binary(max_size=60)), min_size=1))
def test_the_size_that_is_checked_is_never_below_the_size_that_is_written(
    parts: list[tuple[str, bytes, bytes]],
) -> None:
    group = Group("gruppe-ü", GroupConfig())
    group.protocol_type, group.protocol = "consumer", "range"
    for number, (client_id, subscription, assignment) in enumerate(parts):
        protocols = (Proto("range", subscription), Proto("sticky", b""))
        event = replace(join(1, new="x", protocols=protocols), client_id=client_id)
        member = member_of(event, MemberId(f"{client_id}-{number}"))
        member.assignment = assignment
        group.members.add(member)
    members_bytes = group.members.bytes_with("range")
    assert group.members.record_bytes >= members_bytes
    ((key, value),) = encode([GroupRecord("gruppe-ü", group.value(generation=1, assigned=True))])
    written = BATCH_HEADER_BYTES + RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    group.config = GroupConfig(record_bytes_max=written - 1)
    assert not group.can_fit_in_record(members_bytes + sum(len(member.assignment) for member in group.members))
