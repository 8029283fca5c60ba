"""SyncGroup's answers: a conversation for each branch."""

from __future__ import annotations

import pytest
from tests.unit.client.group.script import (
    BACKOFF_MS,
    ENDED,
    HEARTBEAT_MS,
    POLL,
    SESSION_MS,
    Done,
    Reply,
    arm,
    breaks,
    subscribes,
    sync_refused,
    synced,
    syncing,
)

from rota.client.group.states import MemberState
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.sync_group import SyncGroupResponse

S = MemberState
E = ErrorCode


def test_an_assignment_is_taken_over_in_the_poll_that_waits() -> None:
    assert (
        syncing()
        >> synced("t-0")
        << arm("heartbeat", HEARTBEAT_MS)
        << arm("session", SESSION_MS)
        << (
            "assign",
            ("t-0",),
            ("t-0",),
        )
    )


def test_an_assignment_waits_for_a_poll() -> None:
    script = syncing().does(ENDED)
    script.does(synced("t-0")).is_in(S.ASSIGNING, 1)
    assert script.m.is_due
    assert script >> POLL << ("assign", ("t-0",), ("t-0",))


def test_no_bytes_are_no_partitions() -> None:
    script = syncing()
    _ = script >> Reply("sync", SyncGroupResponse())
    script.includes(("assign", (), ()))


@pytest.mark.parametrize(
    "answer",
    [
        Reply("sync", SyncGroupResponse(assignment=b"\0")),
        synced("t-0", protocol="roundrobin"),
        synced("t-0", protocol_type="connect"),
    ],
)
def test_an_invalid_assignment_is_refused(answer: Reply) -> None:
    script = syncing()
    _ = script >> answer
    script.includes(("fail", "AssignmentFailed")).is_in(S.DOWN, -1)


@pytest.mark.parametrize(
    ("code", "member", "name"),
    [
        (E.ILLEGAL_GENERATION, "a", "IllegalGenerationException"),
        (E.UNKNOWN_MEMBER_ID, "", "UnknownMemberIdException"),
        (E.REBALANCE_IN_PROGRESS, "a", "RebalanceInProgressException"),
    ],
)
def test_a_sync_that_is_refused_returns_to_joining(code: ErrorCode, member: str, name: str) -> None:
    script = syncing()
    _ = script >> sync_refused(code)
    script.includes(("join", member, f"rebalance failed due to {name}"))
    script.is_in(S.JOINING, 1 if code is E.REBALANCE_IN_PROGRESS else -1)


def test_another_coordinator_is_looked_for() -> None:
    script = syncing()
    _ = script >> sync_refused(E.NOT_COORDINATOR)
    script.includes(("forget", 1)).is_in(S.DISCOVERING, 1)


def test_a_connection_that_breaks_is_a_coordinator_to_look_for() -> None:
    script = syncing()
    _ = script >> breaks("sync")
    script.includes(("forget", 1), arm("retry", 2 * BACKOFF_MS)).is_in(S.DISCOVERING, 1)


def test_fenced_is_for_good() -> None:
    script = syncing(group_instance_id="i")
    _ = script >> sync_refused(E.FENCED_INSTANCE_ID)
    script.includes(("fail", "FencedInstance")).is_in(S.DOWN, -1)


def test_a_fatal_sync_error_is_raised() -> None:
    script = syncing()
    _ = script >> sync_refused(E.GROUP_AUTHORIZATION_FAILED)
    script.includes(("fail", "BrokerError")).is_in(S.DOWN, -1)


def test_a_subscription_that_changed_meanwhile_is_joined_with_afterwards() -> None:
    script = syncing().does(subscribes("t", "u"))
    assert script.m.rejoin is None
    script.does(synced("t-0"), Done(), Done(), Done())
    assert script.request("join").reason == "subscription has changed"
