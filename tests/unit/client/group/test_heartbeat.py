"""Heartbeats, sessions, coordinators that are lost: a conversation for each branch (R12)."""

from __future__ import annotations

import pytest
from tests.unit.client.group.script import (
    BACKOFF_MS,
    ENDED,
    FOUND,
    HEARTBEAT_MS,
    POLL,
    RETURNING,
    SESSION_MS,
    Done,
    arm,
    breaks,
    cooperative,
    disarm,
    fires,
    heartbeat_reply,
    joining,
    stable,
    synced,
    syncing,
)

from rota.client.errors import BrokerError, TimedOut, Unsupported
from rota.client.group import notes
from rota.client.group.events import CommitRefused, CoordinatorNotFound
from rota.client.group.states import MemberState
from rota.protocol.errors import ErrorCode

S = MemberState
E = ErrorCode


def test_heartbeats_are_sent_without_polls() -> None:
    script = stable()
    for n in range(1, 5):
        script.after(HEARTBEAT_MS)
        assert (
            script
            >> fires("heartbeat")
            << arm("heartbeat", (n + 1) * HEARTBEAT_MS)
            << ("heartbeat", 1)
            >> heartbeat_reply()
            << arm("session", n * HEARTBEAT_MS + SESSION_MS)
        )


def test_a_heartbeat_names_the_member_and_gives_up_before_the_session_does() -> None:
    script = stable(group_instance_id="i").does(fires("heartbeat"))
    request = script.request("heartbeat")
    assert (request.group_id, request.member_id, request.group_instance_id) == ("g", "a", "i")
    assert script.requests["heartbeat"].timeout_ms == SESSION_MS


def test_a_second_heartbeat_waits_for_the_answer_to_the_first() -> None:
    script = stable().does(fires("heartbeat")).after(HEARTBEAT_MS)
    assert script >> fires("heartbeat") << arm("heartbeat", 2 * HEARTBEAT_MS)


def test_no_heartbeat_is_sent_while_a_sync_is_pending() -> None:
    assert syncing() >> fires("heartbeat") << arm("heartbeat", HEARTBEAT_MS)


def test_a_rebalance_waits_for_the_next_poll() -> None:
    script = stable().does(fires("heartbeat"))
    assert script >> heartbeat_reply(E.REBALANCE_IN_PROGRESS) << arm("session", SESSION_MS) << ("wake",)
    script.is_in(S.STABLE, 1).emitted(notes.REBALANCING, group="g", member="a", generation=1)
    script.does(fires("heartbeat"))
    assert script >> heartbeat_reply(E.REBALANCE_IN_PROGRESS) << arm("session", SESSION_MS)  # told once


def test_loading_is_being_alive() -> None:
    script = stable().does(fires("heartbeat"))
    assert script >> heartbeat_reply(E.COORDINATOR_LOAD_IN_PROGRESS) << arm("session", SESSION_MS)


def test_a_transient_error_is_retried_with_the_next_heartbeat() -> None:
    script = stable().does(fires("heartbeat"))
    assert script >> heartbeat_reply(E.NETWORK_EXCEPTION)
    script.is_in(S.STABLE, 1)


@pytest.mark.parametrize(("code", "member"), [(E.ILLEGAL_GENERATION, "a"), (E.UNKNOWN_MEMBER_ID, "")])
def test_a_removed_member_loses_its_partitions_at_the_next_poll(code: ErrorCode, member: str) -> None:
    script = stable().does(fires("heartbeat"))
    assert script >> heartbeat_reply(code) << disarm("heartbeat") << disarm("session") << ("wake",)
    script.is_in(S.DOWN, -1)
    assert script.m.group.generation_id == -1
    assert (
        script
        >> POLL
        << disarm("poll")
        << ("lose", "t-0")
        >> Done()
        << ("join", member, f"encountered {code.name} from HEARTBEAT response")
    )


def test_fenced_is_for_good() -> None:
    script = stable(group_instance_id="i").does(fires("heartbeat"))
    _ = script >> heartbeat_reply(E.FENCED_INSTANCE_ID)
    script.includes(("fail", "FencedInstance")).is_in(S.DOWN, -1)
    assert script >> POLL << disarm("poll") << ("fail", "FencedInstance")


def test_a_fatal_error_is_raised_by_the_next_poll() -> None:
    script = stable().does(fires("heartbeat"))
    _ = script >> heartbeat_reply(E.GROUP_AUTHORIZATION_FAILED)
    script.includes(("fail", "BrokerError")).is_in(S.DOWN, -1)


def test_an_unsupported_heartbeat_is_raised() -> None:
    script = stable().does(fires("heartbeat"))
    _ = script >> breaks("heartbeat", Unsupported("Heartbeat"))
    script.includes(("fail", "Unsupported"))


# ---- the coordinator


@pytest.mark.parametrize(
    "how", [breaks("heartbeat"), breaks("heartbeat", TimedOut("late")), heartbeat_reply(E.NOT_COORDINATOR)]
)
def test_a_member_without_its_coordinator_reads_on_and_looks_for_it(how: object) -> None:
    script = stable().does(fires("heartbeat"))
    assert script >> how << ("forget", 1) << disarm("heartbeat") << ("find coordinator",)
    script.is_in(S.REDISCOVERING, 1)
    assert not script.m.is_due
    assert script >> FOUND << arm("heartbeat", HEARTBEAT_MS) << ("heartbeat", 1)
    script.is_in(S.REDISCOVERING, 1)
    assert script >> heartbeat_reply() << arm("session", SESSION_MS)
    script.is_in(S.STABLE, 1)


def test_lookups_of_an_unreachable_coordinator_back_off() -> None:
    script = stable().does(fires("heartbeat"), breaks("heartbeat"), FOUND)
    assert script >> breaks("heartbeat") << ("forget", 1) << disarm("heartbeat") << arm("retry", 2 * BACKOFF_MS)
    assert script >> fires("retry") << ("find coordinator",)
    assert script >> CoordinatorNotFound(TimedOut("late")) << arm("retry", 4 * BACKOFF_MS)


def test_a_heartbeat_that_was_answered_makes_the_next_loss_the_first_one() -> None:
    script = stable().does(fires("heartbeat"), breaks("heartbeat"), FOUND, heartbeat_reply(), fires("heartbeat"))
    assert script >> breaks("heartbeat") << ("forget", 1) << disarm("heartbeat") << ("find coordinator",)


def test_a_rebalance_that_is_heard_of_after_rediscovery_is_joined() -> None:
    script = stable().does(fires("heartbeat"), breaks("heartbeat"), FOUND, heartbeat_reply(E.REBALANCE_IN_PROGRESS))
    script.is_in(S.STABLE, 1)
    assert script.m.rejoin == "group is already rebalancing"


def test_a_group_authorization_failure_is_raised() -> None:
    script = stable().does(fires("heartbeat"), breaks("heartbeat"))
    _ = script >> CoordinatorNotFound(BrokerError(30, "looking"))
    script.includes(("fail", "BrokerError")).is_in(S.DOWN, -1)


# ---- sessions


def test_a_session_that_runs_out_ends_the_membership() -> None:
    script = stable().does(fires("heartbeat"), breaks("heartbeat")).after(SESSION_MS)
    assert script >> fires("session") << ("wake",)
    script.is_in(S.DOWN, -1).emitted(notes.SESSION_EXPIRED)
    _ = script >> POLL
    script.includes(("lose", "t-0"))
    script.does(Done(), FOUND)
    assert script.request("join").member_id == "a"  # perhaps the coordinator knows us still
    assert script.request("join").reason == "session timed out without receiving a heartbeat response"


def test_a_session_that_runs_out_under_a_heartbeat_makes_the_coordinator_unknown() -> None:
    script = stable().does(fires("heartbeat")).after(SESSION_MS)
    _ = script >> fires("session")
    script.includes(("drop", "heartbeat"), ("forget", 1)).is_in(S.DOWN, -1)


def test_a_session_that_runs_out_while_a_callback_runs_has_its_partitions_lost_after_it() -> None:
    script = cooperative("t-0", "t-1").does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL)
    script.does(fires("session")).is_in(S.DOWN, -1)
    assert script >> Done() << ("lose", "t-0", "t-1")


# ---- commits that were refused


@pytest.mark.parametrize("code", [E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID])
def test_a_commit_that_was_refused_ends_the_membership(code: ErrorCode) -> None:
    script = stable()
    _ = script >> CommitRefused(code, 1)
    script.includes(("wake",)).is_in(S.DOWN, -1)
    assert script.m.reason == f"encountered {code.name} from OFFSET_COMMIT response"


def test_a_refused_commit_of_an_earlier_generation_is_ignored() -> None:
    assert stable() >> CommitRefused(E.ILLEGAL_GENERATION, 0)
    assert joining() >> CommitRefused(E.UNKNOWN_MEMBER_ID)


def test_a_commit_into_a_rebalance_has_the_next_poll_join() -> None:
    script = stable()
    assert script >> CommitRefused(E.REBALANCE_IN_PROGRESS) << ("wake",)
    assert script.m.rejoin == "offset commit failed since group is already rebalancing"
    assert syncing() >> CommitRefused(E.REBALANCE_IN_PROGRESS)


def test_a_commit_that_was_fenced_is_for_good() -> None:
    script = stable(group_instance_id="i")
    _ = script >> CommitRefused(E.FENCED_INSTANCE_ID)
    script.includes(("fail", "FencedInstance"))


def test_commit_errors_that_do_not_end_the_membership_are_ignored() -> None:
    assert stable() >> CommitRefused(E.OFFSET_METADATA_TOO_LARGE)


def test_heartbeats_begin_with_the_generation() -> None:
    script = syncing().does(ENDED, RETURNING, synced("t-0"))
    assert script >> fires("heartbeat") << arm("heartbeat", HEARTBEAT_MS) << ("heartbeat", 1)
