"""Room for what peers send: bounded, fair, never stuck."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.coordinator.server.intake import Intake


class Asker:
    def __init__(self) -> None:
        self.rooms = 0

    def admitted(self) -> None:
        self.rooms += 1


def test_room_is_given_until_it_is_full_and_then_in_order() -> None:
    intake, first, second, third = Intake(100), Asker(), Asker(), Asker()
    assert intake.admit(first, 60)
    assert not intake.admit(second, 60)
    assert not intake.admit(third, 10), "who comes later does not overtake"
    intake.release(60)
    assert (second.rooms, third.rooms, intake.held_bytes) == (1, 1, 70)


def test_one_that_is_larger_than_all_room_goes_alone() -> None:
    intake, huge, small = Intake(100), Asker(), Asker()
    assert intake.admit(huge, 1000)
    assert not intake.admit(small, 1)
    intake.release(1000)
    assert small.rooms == 1


def test_what_is_here_already_counts() -> None:
    intake = Intake(100)
    intake.hold(90)
    assert not intake.admit(Asker(), 20)


def test_whoever_goes_waits_no_more() -> None:
    intake, gone, stays = Intake(100), Asker(), Asker()
    intake.hold(50)
    assert not intake.admit(gone, 90)
    assert not intake.admit(stays, 40)
    intake.forget(gone)
    assert (gone.rooms, stays.rooms) == (0, 1)


def test_giving_back_too_much_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        Intake(100).release(1)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 150)), max_size=60))
def test_never_above_the_limit_but_for_a_lone_one_and_nobody_waits_for_ever(steps: list[tuple[bool, int]]) -> None:
    intake, inside, waiting = Intake(100), list[int](), list[tuple[Asker, int]]()
    for ask, size in steps:
        if ask:
            who = Asker()
            if intake.admit(who, size):
                inside.append(size)
            else:
                waiting.append((who, size))
        elif inside:
            intake.release(inside.pop(0))
        inside += [size for who, size in waiting if who.rooms]
        waiting = [(who, size) for who, size in waiting if not who.rooms]
        assert intake.held_bytes == sum(inside)
        assert intake.held_bytes <= 100 or len(inside) == 1
        assert not waiting or inside
