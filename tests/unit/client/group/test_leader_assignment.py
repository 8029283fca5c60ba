"""The leader of a generation: knows all topics, assigns, watches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from tests.unit.client.group.script import (
    ENDED,
    FOUND,
    POLL,
    Done,
    Script,
    breaks,
    fires,
    heartbeat_reply,
    joined,
    joining,
    knows,
    named,
    reads,
    synced,
)

from rota.client.errors import AssignmentFailed
from rota.client.group import notes
from rota.client.group.assignors.base import GroupAssignment, MemberSubscription, RebalanceProtocol
from rota.client.group.states import MemberState
from rota.client.group.subscription import encoded_subscription, flat
from rota.client.types import PartitionInfo
from rota.protocol.consumer_protocol import decode_assignment
from rota.protocol.errors import ErrorCode

S = MemberState
E = ErrorCode
T, U = encoded_subscription(("t",), None, (), -1, ""), encoded_subscription(("u",), None, (), -1, "")


def assigned(script: Script) -> dict[str, list[str]]:
    """What the last SyncGroup brings to each member."""
    return {
        item.member_id: [str(part) for part in flat(decode_assignment(item.assignment).assigned_partitions)]
        for item in script.request("sync").assignments
    }


def test_the_assignment_of_the_leader_names_every_member() -> None:
    script = joining()
    _ = script >> joined(1, leader="a", others={"b": T, "c": U})
    script.does(reads(t=2))
    assert assigned(script) == {"a": ["t-0"], "b": ["t-1"], "c": []}
    script.emitted(notes.FINISHED_ASSIGNMENT, members=3, partitions=2, assignor="range")
    assert script.request("sync").protocol_name == "range"


def test_a_topic_of_others_is_looked_up_first() -> None:
    script = joining()
    _ = script >> joined(1, leader="a", others={"b": U})
    script.includes(("want", ("t", "u")), ("refresh metadata",))
    assert script.m.rebalance_ticket is None
    _ = script >> fires("heartbeat")  # nothing holds heartbeats up meanwhile
    script.includes(("heartbeat", 1))
    _ = script >> reads(t=2, u=1)
    script.includes(("drop", "heartbeat"), ("sync", 1, ("a", "b")))
    assert assigned(script) == {"a": ["t-0", "t-1"], "b": ["u-0"]}


def test_an_unknown_topic_is_assigned_once_it_exists() -> None:
    script = joining().does(joined(1, leader="a", others={"b": U}))
    script.does(reads(t=1))
    script.emitted(notes.TOPICS_UNKNOWN, topics=["u"])
    assert assigned(script) == {"a": ["t-0"], "b": []}
    script.does(synced("t-0"), Done(), ENDED)
    assert script >> knows(t=1, u=3) << ("wake",)
    assert script.m.rejoin == "cached metadata has changed"
    script.emitted(notes.REQUEST_JOINING, reason="cached metadata has changed: u from unknown to 3 partitions")


def test_a_former_leader_requests_only_its_own_topics() -> None:
    script = joining().does(joined(1, leader="a", others={"b": U}), reads(t=1, u=1), synced("t-0"), Done())
    script.does(fires("heartbeat"), heartbeat_reply(E.REBALANCE_IN_PROGRESS), POLL, Done(), Done())
    _ = script >> joined(2)
    script.includes(("want", ("t",)))
    assert script.m.watched is None


def test_a_static_leader_that_came_back_leaves_the_assignment_as_it_is() -> None:
    script = joining(group_instance_id="i")
    _ = script >> joined(4, leader="a", skip=True)
    script.includes(("sync", 4, ()))
    script.emitted(notes.SKIPPED_ASSIGNMENT)
    assert script.m.watched == {"t": (0, 1)}


def test_a_coordinator_that_is_lost_while_the_leader_reads_metadata_is_looked_for() -> None:
    script = joining().does(joined(1, leader="a", others={"b": U}), fires("heartbeat"), breaks("heartbeat"))
    script.is_in(S.DISCOVERING, 1)
    assert script >> reads(t=1, u=1)
    _ = script >> FOUND
    script.includes(("join", "a", "rebalance failed due to DisconnectException"))


# ---- assignors


class Odd:
    """An assignor of the user's: gives what it was told to."""

    name = "range"

    def __init__(self, *given: tuple[str, str], cooperative: bool = False) -> None:
        self.given = given
        self.supports = frozenset({RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER})

    def user_data(self, topics: object) -> bytes | None:
        return None

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        if not self.given:
            raise ValueError("I cannot")
        partitions: dict[str, list[object]] = {}
        for member, partition in self.given:
            partitions.setdefault(member, []).extend(named(partition))
        return GroupAssignment(partitions, {"a": b"for a"})

    def on_assignment(self, partitions: object, user_data: object, generation_id: int) -> None:
        pass


def led_by(assignor: Odd, others: dict[str, bytes] | None = None) -> Script:
    script = joining()
    script.m.assignors, script.m.protocol = {"range": assignor}, next(iter(assignor.supports))
    _ = script >> joined(1, leader="a", others=others)
    return script


def test_user_data_of_the_assignor_is_sent_to_the_members() -> None:
    script = led_by(Odd(("a", "t-1"))).does()
    assert decode_assignment(script.request("sync").assignments[0].assignment).user_data == b"for a"


@pytest.mark.parametrize(
    ("assignor", "why"),
    [
        (Odd(), "I cannot"),
        (Odd(("z", "t-0")), "gave partitions to z: not in the group"),
        (Odd(("a", "t-0"), ("b", "t-0")), "gave a partition twice: t-0"),
        (Odd(("a", "t-0"), ("a", "t-0")), "gave a partition twice"),
    ],
)
def test_an_assignment_that_cannot_be_right_is_refused(assignor: Odd, why: str) -> None:
    script = led_by(assignor, {"b": T})
    script.includes(("fail", "AssignmentFailed")).is_in(S.DOWN, -1)
    assert isinstance(script.failure, AssignmentFailed)
    assert why in str(script.failure)


def test_a_cooperative_assignment_of_a_partition_that_another_member_owns_is_refused() -> None:
    holds = {"b": encoded_subscription(("t",), None, named("t-0"), 3, "")}
    script = led_by(Odd(("a", "t-0"), cooperative=True), holds)
    script.includes(("fail", "AssignmentFailed"))
    assert "t-0" in str(script.failure)
    script = led_by(Odd(("b", "t-0"), ("a", "t-1"), cooperative=True), holds)
    script.includes(("sync", 1, ("a", "b")))


def test_an_unknown_assignor_is_refused() -> None:
    script = joining()
    _ = script >> joined(1, leader="a", protocol="theirs")
    script.includes(("fail", "AssignmentFailed"))


def test_a_subscription_that_cannot_be_read_is_refused() -> None:
    script = joining()
    _ = script >> joined(1, leader="a", others={"b": b"\0"})
    script.includes(("fail", "AssignmentFailed"))


def test_after_a_failure_the_next_poll_joins_again() -> None:
    script = led_by(Odd()).does(ENDED)
    _ = script.does(POLL) >> fires("retry")
    script.includes(("join", "a", "rebalance failed due to AssignmentFailed"))
