"""The checks of a history find each kind of violation, and accept correct histories."""

from __future__ import annotations

from itertools import permutations

import pytest
from tests.simulation.history import Claim, Notice, Op, disputed_generations, double_owners, is_linearizable


def commit(offset: int, began: float, done: float | None) -> Op:
    return Op("commit", offset, began, done)


def fetch(offset: int, began: float, done: float | None) -> Op:
    return Op("fetch", offset, began, done)


@pytest.mark.parametrize(
    "ops",
    [
        [commit(5, 0, 1), fetch(5, 2, 3), commit(7, 4, 5), fetch(7, 6, 7)],
        [fetch(-1, 0, 1)],
        [commit(5, 0, 1), commit(7, 2, None), fetch(5, 4, 5)],
        [commit(5, 0, 1), commit(7, 2, None), fetch(7, 4, 5)],
        [commit(5, 0, 1), commit(7, 2, None), fetch(5, 4, 5), fetch(7, 6, 7)],
        [commit(5, 0, 10), fetch(-1, 1, 2), fetch(5, 3, 4)],
        [commit(5, 0, 1), fetch(9, 2, None)],
    ],
)
def test_possible(ops: list[Op]) -> None:
    assert is_linearizable(ops)
    assert is_linearizable(reversed(ops))


@pytest.mark.parametrize(
    "ops",
    [
        [commit(5, 0, 1), commit(7, 2, 3), fetch(5, 4, 5)],  # lost
        [commit(5, 0, 1), commit(7, 2, None), fetch(7, 4, 5), fetch(5, 6, 7)],  # came and went
        [commit(5, 0, 10), fetch(5, 1, 2), fetch(-1, 3, 4)],
        [fetch(0, 0, 1)],  # O2
        [commit(5, 0, 1), fetch(6, 2, 3)],  # never sent
        [commit(5, 2, None), fetch(5, 0, 1)],  # seen before it was sent
    ],
)
def test_impossible(ops: list[Op]) -> None:
    assert not is_linearizable(ops)


def test_commits_under_way_together_may_end_in_any_order() -> None:
    for order in permutations((1, 2, 3)):
        ops = [commit(offset, 0, 10) for offset in (1, 2, 3)]
        ops += [fetch(offset, 1 + at, 1.5 + at) for at, offset in enumerate(order)]
        assert is_linearizable(ops)


def test_overlapping_owners_of_one_generation_are_found() -> None:
    first, again = Claim("g", 1, 0, "a", 0, 5), Claim("g", 1, 0, "b", 4, 9)
    assert double_owners([again, first]) == [(first, again)]
    assert not double_owners([first, Claim("g", 1, 0, "b", 5, 9), Claim("g", 2, 0, "c", 4, 9)])
    assert not double_owners([first, Claim("h", 1, 0, "b", 4, 9), Claim("g", 1, 1, "b", 4, 9)])


def test_a_generation_is_one_set_of_members_under_one_leader() -> None:
    leader = Notice("g", 3, "a", "a", frozenset("ab"))
    assert not disputed_generations([leader, Notice("g", 3, "b", "a", None), Notice("g", 4, "b", "b", frozenset("b"))])
    assert disputed_generations([leader, Notice("g", 3, "b", "b", frozenset("ab"))])
    assert disputed_generations([leader, Notice("g", 3, "a", "a", frozenset("abc"))])
    assert disputed_generations([Notice("g", 3, "c", "a", None), leader]) == [("g", 3, "given to ['c'] as well")]
