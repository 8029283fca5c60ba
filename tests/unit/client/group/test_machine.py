"""What a membership shows of itself, and what holds for every branch."""

from __future__ import annotations

import pytest
from tests.unit.client.group.script import (
    CONFIG,
    ENDED,
    FOUND,
    POLL,
    RETURNING,
    Broken,
    Done,
    Reply,
    Script,
    arm,
    breaks,
    cooperative,
    fires,
    heartbeat_reply,
    joined,
    joining,
    knows,
    left,
    stable,
    subscribes,
    sync_refused,
    synced,
    syncing,
)

from rota.client.config import ConsumerConfig
from rota.client.errors import ConfigError, KafkaError, TimedOut
from rota.client.group import events
from rota.client.group.assignors.base import RebalanceProtocol
from rota.client.group.assignors.range import RangeAssignor
from rota.client.group.assignors.strategies import resolve
from rota.client.group.machine import step
from rota.client.group.state import new_member
from rota.client.group.states import MemberState
from rota.client.types import GroupMetadata
from rota.protocol.errors import ErrorCode

S = MemberState
E = ErrorCode


@pytest.mark.parametrize(
    ("strategies", "protocol"),
    [
        ("range", RebalanceProtocol.EAGER),
        ("range,cooperative-sticky", RebalanceProtocol.EAGER),
        ("cooperative-sticky", RebalanceProtocol.COOPERATIVE),
    ],
)
def test_the_highest_protocol_that_all_assignors_support(strategies: str, protocol: RebalanceProtocol) -> None:
    assert Script(strategy=strategies).m.protocol is protocol


def test_assignors_without_a_protocol_in_common_are_refused() -> None:
    class Forward(RangeAssignor):
        supports = frozenset({RebalanceProtocol.COOPERATIVE})

    with pytest.raises(ConfigError, match="range, roundrobin"):
        new_member(ConsumerConfig(bootstrap_servers="h:1", group_id="g"), [Forward(), *resolve("roundrobin")])


def test_group_metadata_has_the_generation_while_it_is_joined() -> None:
    assert Script(group_instance_id="i").m.group == GroupMetadata("g", -1, "", "i")
    assert joining().m.group == GroupMetadata("g", -1, "")
    assert stable().m.group == GroupMetadata("g", 1, "a")


def test_a_poll_waits_until_the_membership_is_settled() -> None:
    script = Script()
    for event in (POLL, FOUND, joined(1), synced("t-0")):
        assert script.m.is_due
        script.does(event)
    assert script.m.is_due
    script.does(Done())
    assert not script.m.is_due


@pytest.mark.parametrize("late", [heartbeat_reply(E.UNKNOWN_MEMBER_ID), breaks("heartbeat")])
def test_an_unexpected_response_is_ignored(late: Reply | Broken) -> None:
    script = stable().does(fires("heartbeat"), heartbeat_reply())
    assert script >> late
    script.is_in(S.STABLE, 1)


def test_a_hook_that_does_not_run_cannot_end() -> None:
    script = stable()
    assert script >> Done()


def test_a_join_is_not_sent_twice() -> None:
    script = joining().does(ENDED)
    assert script >> POLL
    assert script >> knows(t=7)


def test_waiting_grows_to_its_limit_and_is_forgotten_after_a_success() -> None:
    script = Script(retry_backoff_max_ms=300).does(POLL)
    for expected in (100, 200, 300, 300):
        assert script >> events.CoordinatorNotFound(TimedOut("late")) << arm("retry", expected)
        script.does(fires("retry"))
    script.does(FOUND, joined(1))
    assert script.m.attempts == 0


def test_a_closed_membership_is_deaf() -> None:
    script = stable().does(events.Close("ends"), Done(), Done(), left())
    assert script.m.state is S.CLOSED
    assert not script.m.is_due
    assert script >> knows(t=9)


def test_a_cooperative_member_without_partitions_waits() -> None:
    assert syncing(protocol="cooperative-sticky").m.is_due
    script = cooperative().does(subscribes("t", "u"), POLL, Done())
    assert not script.m.is_due


def test_a_rebalance_that_the_user_wants_is_joined_by_the_next_poll() -> None:
    script = cooperative()
    assert script >> events.Rejoin("rebalance enforced by user") << ("wake",)
    script.does(POLL, Done())
    assert script.request("join").reason == "rebalance enforced by user"
    assert Script() >> events.Rejoin("nothing to do")


# answers


def test_each_answer_finds_its_branch() -> None:
    assert joining().m.rebalance_ticket is not None
    assert syncing().does(synced("t-0")).m.state is S.ASSIGNING
    assert stable().does(fires("heartbeat"), heartbeat_reply(E.ILLEGAL_GENERATION)).m.state is S.DOWN


def test_each_failure_finds_its_branch() -> None:
    assert stable().does(fires("heartbeat"), breaks("heartbeat")).m.state is S.REDISCOVERING
    assert syncing().does(breaks("sync")).m.state is S.DISCOVERING


def test_a_second_answer_to_a_sync_changes_nothing() -> None:
    script = stable()
    assert script >> sync_refused(E.UNKNOWN_MEMBER_ID)
    assert script >> breaks("sync")
    script.is_in(S.STABLE, 1)


def test_an_answer_to_a_leave_for_want_of_polls_changes_nothing() -> None:
    script = stable().does(RETURNING, fires("poll"))
    assert script >> left(E.UNKNOWN_MEMBER_ID)
    assert script >> breaks("leave")
    script.is_in(S.DOWN, -1)


def test_an_unknown_ticket_is_nobodys() -> None:
    script = Script(session_timeout_ms=CONFIG["session_timeout_ms"])
    assert not step(script.m, events.ResponseReceived(99, None), 0)
    assert not step(script.m, events.RequestFailed(99, KafkaError("gone")), 0)
    script.is_in(S.DOWN, -1)
