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


def test_the_first_leads_until_it_goes() -> None:
    some = members(a="x", b="x", c="x")
    assert some.leader == A
    some.remove(B)
    assert some.leader == A
    some.remove(A)
    assert some.leader == C
    some.remove(C)
    assert some.leader is None


def test_a_leader_that_has_not_joined_gives_way_to_the_first_that_has() -> None:
    some = members(a="x", b="x", c="x")
    assert not some.elect_leader()
    some.park_join(some.by_id[C], Token(1))
    assert some.elect_leader()
    assert some.leader == C
    some.park_join(some.by_id[A], Token(2))
    assert some.elect_leader()
    assert some.leader == C


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


def test_what_all_know_is_kept_up_to_date() -> None:
    some = members(a="x y", b="y")
    assert some.supports(protos("y"))
    assert not some.supports(protos("x"))
    some.update(some.by_id[B], join(1, "b", protocols=protos("x")))
    assert some.supports(protos("x"))
    some.remove(A)
    some.remove(B)
    assert some.supports(protos("anything"))
    assert not some.supports(())


def test_joins_are_counted_once() -> None:
    some = members(a="x", b="x")
    assert some.park_join(some.by_id[A], Token(1)) is None
    assert some.park_join(some.by_id[A], Token(2)) == Token(1)
    assert (some.awaiting_join, some.all_joined) == (1, False)
    some.park_join(some.by_id[B], Token(3))
    assert some.all_joined
    some.pending[C] = None
    assert not some.all_joined
    some.remove(C)
    assert some.take_join(some.by_id[A]) == Token(2)
    assert some.take_join(some.by_id[A]) is None
    some.remove(B)
    assert some.awaiting_join == 0


def static(name: str) -> Member:
    return member_of(join(1, instance=f"i-{name}"), MemberId(name))


def test_an_instance_keeps_its_place_its_vote_and_its_part() -> None:
    some = Members()
    for name in "abc":
        some.add(static(name))
    some.by_id[B].assignment = b"B"
    some.unsynced[B] = None
    new = some.replace(some.by_id[B], MemberId("b2"))
    assert list(some.by_id) == ["a", "b2", "c"]
    assert (new.assignment, new.instance_id) == (b"B", "i-b")
    assert list(some.unsynced) == ["b2"]
    assert some.supporters["range"] == 3
    assert some.replace(some.by_id[A], MemberId("a2")).member_id == some.leader


def test_who_may_speak_for_an_instance() -> None:
    some = Members()
    some.add(static("a"))
    assert some.check(A, InstanceId("i-a")) is ErrorCode.NONE
    assert some.check(A, None) is ErrorCode.NONE
    assert some.check(B, None) is ErrorCode.UNKNOWN_MEMBER_ID
    assert some.check(A, InstanceId("j")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert some.check(B, InstanceId("i-a")) is ErrorCode.FENCED_INSTANCE_ID


def test_two_members_cannot_be_one_instance() -> None:
    some = Members()
    some.add(static("a"))
    with pytest.raises(AssertionError):
        some.add(member_of(join(1, instance="i-a"), B))


def test_the_rebalance_timeout_is_the_largest() -> None:
    some = Members()
    assert some.rebalance_ms == 0
    for n, ms in enumerate([5, 9, 7]):
        some.add(member_of(join(1, rebalance_ms=ms), MemberId(f"m{n}")))
    assert some.rebalance_ms == 9


def test_assignors_that_nobody_knows_any_more_are_forgotten() -> None:
    some = members(a="range", b="range")
    for number in range(10):
        some.update(some.by_id[A], join(1, protocols=protos("range", f"new-{number}")))
    some.remove(B)
    assert some.supporters == {"range": 1, "new-9": 1}
