"""The soft member set by itself: counts, votes, leaders."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.group.script import join

from rota.coordinator.group.events import InstanceId, MemberId, Proto, Token
from rota.coordinator.group.members import Member, Members, member_of
from rota.protocol.errors import ErrorCode

A, B, C = MemberId("a"), MemberId("b"), MemberId("c")


def protos(*names: str) -> tuple[Proto, ...]:
    return tuple(Proto(name, b"") for name in names)


def members(**protocols: str) -> Members:
    """members(a="range roundrobin"): member a knows these two and prefers the first."""
    made = Members()
    for name, known in protocols.items():
        made.add(member_of(join(1, protocols=protos(*known.split())), MemberId(name)))
    return made


def test_the_leader_is_the_first_member_until_it_is_removed() -> None:
    roster = members(a="x", b="x", c="x")
    assert roster.leader == A
    roster.remove(B)
    assert roster.leader == A
    roster.remove(A)
    assert roster.leader == C
    roster.remove(C)
    assert roster.leader is None


def test_a_leader_that_has_not_joined_gives_way_to_the_first_that_has() -> None:
    roster = members(a="x", b="x", c="x")
    assert not roster.elect_leader()
    roster.park_join(roster.by_id[C], Token(1))
    assert roster.elect_leader()
    assert roster.leader == C
    roster.park_join(roster.by_id[A], Token(2))
    assert roster.elect_leader()
    assert roster.leader == C


@pytest.mark.parametrize(
    ("preferences", "chosen"),
    [
        ({"a": "x"}, "x"),
        ({"a": "x y", "b": "y x", "c": "y x"}, "y"),
        ({"a": "x y", "b": "y"}, "y"),  # only what all know is a candidate
        ({"a": "x y z", "b": "z y"}, "y"),  # a tie goes to the one voted for first
        ({"a": "x x", "b": "x"}, "x"),  # named twice is known once
    ],
)
def test_votes(preferences: dict[str, str], chosen: str) -> None:
    assert members(**preferences).select_protocol() == chosen


def test_common_protocols_follow_updates_and_removals() -> None:
    roster = members(a="x y", b="y")
    assert roster.supports(protos("y"))
    assert not roster.supports(protos("x"))
    roster.update(roster.by_id[B], join(1, "b", protocols=protos("x")))
    assert roster.supports(protos("x"))
    roster.remove(A)
    roster.remove(B)
    assert roster.supports(protos("anything"))
    assert not roster.supports(())


def test_joins_are_counted_once() -> None:
    roster = members(a="x", b="x")
    assert roster.park_join(roster.by_id[A], Token(1)) is None
    assert roster.park_join(roster.by_id[A], Token(2)) == Token(1)
    assert (roster.awaiting_join, roster.has_all_members_joined) == (1, False)
    roster.park_join(roster.by_id[B], Token(3))
    assert roster.has_all_members_joined
    roster.pending[C] = None
    assert not roster.has_all_members_joined
    roster.remove(C)
    assert roster.take_join(roster.by_id[A]) == Token(2)
    assert roster.take_join(roster.by_id[A]) is None
    roster.remove(B)
    assert roster.awaiting_join == 0


def static(name: str) -> Member:
    return member_of(join(1, instance=f"i-{name}"), MemberId(name))


def test_an_instance_keeps_its_place_its_vote_and_its_part() -> None:
    roster = Members()
    for name in "abc":
        roster.add(static(name))
    roster.by_id[B].assignment = b"B"
    roster.unsynced[B] = None
    new = roster.replace(roster.by_id[B], MemberId("b2"))
    assert list(roster.by_id) == ["a", "b2", "c"]
    assert (new.assignment, new.instance_id) == (b"B", "i-b")
    assert list(roster.unsynced) == ["b2"]
    assert roster.supporters["range"] == 3
    assert roster.replace(roster.by_id[A], MemberId("a2")).member_id == roster.leader


def test_check_compares_member_id_and_instance_id() -> None:
    roster = Members()
    roster.add(static("a"))
    assert roster.check(A, InstanceId("i-a")) is ErrorCode.NONE
    assert roster.check(A, None) is ErrorCode.NONE
    assert roster.check(B, None) is ErrorCode.UNKNOWN_MEMBER_ID
    assert roster.check(A, InstanceId("j")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert roster.check(B, InstanceId("i-a")) is ErrorCode.FENCED_INSTANCE_ID


def test_two_members_cannot_be_one_instance() -> None:
    roster = Members()
    roster.add(static("a"))
    with pytest.raises(AssertionError):
        roster.add(member_of(join(1, instance="i-a"), B))


def test_the_rebalance_timeout_is_the_largest() -> None:
    roster = Members()
    assert roster.rebalance_ms == 0
    for n, ms in enumerate([5, 9, 7]):
        roster.add(member_of(join(1, rebalance_ms=ms), MemberId(f"m{n}")))
    assert roster.rebalance_ms == 9


def test_assignors_that_no_member_supports_are_removed() -> None:
    roster = members(a="range", b="range")
    for number in range(10):
        roster.update(roster.by_id[A], join(1, protocols=protos("range", f"new-{number}")))
    roster.remove(B)
    assert roster.supporters == {"range": 1, "new-9": 1}
