"""Taking an assignment over: a conversation for each branch."""

from __future__ import annotations

import pytest
from tests.unit.client.group.script import (
    ENDED,
    FOUND,
    POLL,
    Done,
    Script,
    breaks,
    cooperative,
    fires,
    heartbeat_reply,
    joined,
    joining,
    reads,
    stable,
    subscribes,
    synced,
    syncing,
)

from rota.client.errors import AssignmentFailed
from rota.client.group import notes
from rota.client.group.states import MemberState
from rota.protocol.errors import ErrorCode

S = MemberState
E = ErrorCode
NEXT = "cooperative-sticky"


def again(*partitions: str) -> Script:
    """A cooperative member with t-0 and t-1 that has joined generation 2, and waits in `poll`."""
    script = cooperative("t-0", "t-1").does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, Done())
    return script.does(joined(2, protocol=NEXT))


def test_added_partitions_are_passed_to_on_assigned_and_the_member_is_stable() -> None:
    script = syncing().does(synced("t-1", "t-0"))
    assert script >> Done()
    script.is_in(S.STABLE, 1).emitted(notes.ADDING, partitions=["t-0", "t-1"])
    assert not script.m.is_due


def test_the_eager_protocol_assigns_all_partitions_again() -> None:
    script = stable().does(
        fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, Done(), Done(), joined(2)
    )
    _ = script >> synced("t-0")
    script.includes(("assign", ("t-0",), ("t-0",)))


def test_the_cooperative_protocol_assigns_only_added_partitions() -> None:
    script = cooperative().does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, Done(), ENDED)
    script.does(joined(2, protocol=NEXT), synced("t-0", "t-1"))
    _ = script >> POLL  # it was not held up: it read on
    script.includes(("assign", ("t-0", "t-1"), ("t-1",)))


def test_the_cooperative_protocol_revokes_removed_partitions_and_rejoins() -> None:
    script = again().does(ENDED, synced("t-0"))
    assert script >> POLL << ("revoke", "t-1")
    script.emitted(notes.ASSIGNMENT, assigned=["t-0"], owned=["t-0", "t-1"], added=[], revoked=["t-1"])
    assert script >> Done() << ("assign", ("t-0",), ())
    _ = script >> Done()
    script.includes(("before_rejoin",))
    _ = script >> Done()
    script.includes(("join", "a", "need to revoke partitions and re-join"))


def test_an_empty_assignment_is_passed_to_on_assigned() -> None:
    script = syncing()
    _ = script >> synced()
    script.includes(("assign", (), ()))


def test_topics_that_are_not_subscribed_to_any_more_are_not_taken_over() -> None:
    script = syncing().does(subscribes("u"))
    _ = script >> synced("t-0")
    script.includes(("join", "a", "received assignment does not match the current subscription"))


def test_the_leader_may_know_a_topic_that_matches_before_we_do() -> None:
    script = Script(pattern="t.*", counts={"t": 1}).does(POLL, FOUND, reads(t=1), joined(1))
    _ = script >> synced("t-0", "tt-0")
    script.includes(("refresh metadata",), ("assign", ("t-0", "tt-0"), ("t-0", "tt-0")))
    script.does(Done(), reads(t=1, tt=1))
    assert script.m.rejoin is None
    script.is_in(S.STABLE, 1)


@pytest.mark.parametrize("code", [E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID])
def test_a_member_removed_before_the_poll_assigns_nothing(code: ErrorCode) -> None:
    script = syncing().does(ENDED, synced("t-0"), fires("heartbeat"), heartbeat_reply(code)).is_in(S.DOWN, -1)
    _ = script >> POLL
    script.lacks("assign", "revoke", "lose")


def test_a_member_removed_during_on_assigned_loses_its_partitions() -> None:
    script = syncing().does(synced("t-0"), fires("heartbeat"), heartbeat_reply(E.UNKNOWN_MEMBER_ID)).is_in(S.DOWN, -1)
    assert script >> Done() << ("lose", "t-0")


def test_without_its_coordinator_it_takes_over_and_looks_for_it() -> None:
    script = syncing().does(synced("t-0"), fires("heartbeat"), breaks("heartbeat")).is_in(S.ASSIGNING, 1)
    script.does(Done()).is_in(S.REDISCOVERING, 1)


class Forgetful:
    """An assignor that cannot take note."""

    name = "range"
    supports = frozenset(joining().m.assignors["range"].supports)

    def user_data(self, topics: object) -> None:
        return None

    def assign(self, topics: object, members: object) -> None:
        raise NotImplementedError

    def on_assignment(self, partitions: object, user_data: object, generation_id: int) -> None:
        raise ValueError("no memory")


def test_an_exception_of_on_assignment_is_raised_after_the_callbacks() -> None:
    script = syncing()
    script.m.assignors["range"] = Forgetful()
    _ = script >> synced("t-0")
    script.lacks("fail")
    _ = script >> Done()
    script.includes(("fail", "AssignmentFailed")).is_in(S.STABLE, 1)
    assert isinstance(script.failure, AssignmentFailed)
    assert isinstance(script.failure.__cause__, ValueError)


def test_an_exception_of_a_callback_is_raised_and_the_member_stays_stable() -> None:
    script = syncing().does(synced("t-0"))
    assert script >> Done(ValueError("mine")) << ("fail", "ValueError")
    script.is_in(S.STABLE, 1)
