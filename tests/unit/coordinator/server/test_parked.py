"""G4: exactly one answer, whoever asks for it first; those who go are told about."""

from __future__ import annotations

import pytest

from rota.coordinator.server.parked import Parked


def test_who_waits_is_told_the_answer() -> None:
    parked: Parked[int] = Parked()
    told: list[int] = []
    parked.then(told.append)
    assert not parked.answered
    parked.answer(7)
    assert (told, parked.value) == ([7], 7)


def test_who_asks_late_is_told_at_once() -> None:
    parked: Parked[int] = Parked()
    parked.answer(7)
    told: list[int] = []
    parked.then(told.append)
    assert told == [7]


def test_a_second_answer_is_our_own_mistake() -> None:
    parked: Parked[int] = Parked()
    parked.answer(7)
    with pytest.raises(AssertionError, match="twice"):
        parked.answer(8)


def test_a_mapped_reply_is_the_same_reply_in_another_shape() -> None:
    parked: Parked[int] = Parked(mutes=True)
    shaped = parked.map(str)
    assert shaped.mutes
    parked.answer(7)
    assert shaped.value == "7"
    there: Parked[int] = Parked()
    there.answer(7)
    assert there.map(str).value == "7"


def test_a_reply_has_one_shape() -> None:
    parked: Parked[int] = Parked()
    with pytest.raises(AssertionError, match="one shape"):
        parked.map(str).map(str)


def test_going_away_is_told_once_also_through_a_map() -> None:
    parked: Parked[int] = Parked()
    gone: list[str] = []
    parked.on_abandon(lambda: gone.append("gone"))
    shaped = parked.map(str)
    shaped.abandon()
    shaped.abandon()
    assert gone == ["gone"]


def test_after_the_answer_nobody_goes_away_any_more() -> None:
    parked: Parked[int] = Parked()
    gone: list[str] = []
    parked.on_abandon(lambda: gone.append("gone"))
    parked.answer(7)
    parked.abandon()
    assert gone == []


def test_a_mistake_in_a_shape_harms_nobody_who_answers() -> None:
    parked: Parked[int] = Parked()

    def mistaken(value: int) -> str:
        raise RuntimeError("no shape")

    shaped = parked.map(mistaken)
    parked.answer(7)
    assert isinstance(shaped.value, RuntimeError)


def test_a_reply_that_is_there_is_told_and_so_is_a_mistake_in_it() -> None:
    parked: Parked[int] = Parked()
    parked.answer(7)
    assert parked.told() == 7
    with pytest.raises(ZeroDivisionError):
        parked.map(lambda value: value / 0).told()
