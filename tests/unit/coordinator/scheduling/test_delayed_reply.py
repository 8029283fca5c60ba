"""G4: exactly one answer, whoever asks for it first; those who go are told about."""

from __future__ import annotations

import pytest

from rota.coordinator.scheduling.delayed_reply import DelayedReply


def test_who_waits_is_told_the_answer() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    told: list[int] = []
    delayed_reply.then(told.append)
    assert not delayed_reply.answered
    delayed_reply.answer(7)
    assert (told, delayed_reply.value) == ([7], 7)


def test_who_asks_late_is_told_at_once() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    delayed_reply.answer(7)
    told: list[int] = []
    delayed_reply.then(told.append)
    assert told == [7]


def test_a_second_answer_is_our_own_mistake() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    delayed_reply.answer(7)
    with pytest.raises(AssertionError, match="twice"):
        delayed_reply.answer(8)


def test_a_mapped_reply_is_the_same_reply_in_another_shape() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply(mutes=True)
    shaped = delayed_reply.map(str)
    assert shaped.mutes
    delayed_reply.answer(7)
    assert shaped.value == "7"
    there: DelayedReply[int] = DelayedReply()
    there.answer(7)
    assert there.map(str).value == "7"


def test_a_reply_has_one_shape() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    with pytest.raises(AssertionError, match="one shape"):
        delayed_reply.map(str).map(str)


def test_going_away_is_told_once_also_through_a_map() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    gone: list[str] = []
    delayed_reply.on_abandon(lambda: gone.append("gone"))
    shaped = delayed_reply.map(str)
    shaped.abandon()
    shaped.abandon()
    assert gone == ["gone"]


def test_after_the_answer_nobody_goes_away_any_more() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    gone: list[str] = []
    delayed_reply.on_abandon(lambda: gone.append("gone"))
    delayed_reply.answer(7)
    delayed_reply.abandon()
    assert gone == []


def test_a_mistake_in_a_shape_harms_nobody_who_answers() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()

    def mistaken(value: int) -> str:
        raise RuntimeError("no shape")

    shaped = delayed_reply.map(mistaken)
    delayed_reply.answer(7)
    assert isinstance(shaped.value, RuntimeError)


def test_a_reply_that_is_there_is_told_and_so_is_a_mistake_in_it() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    delayed_reply.answer(7)
    assert delayed_reply.result() == 7
    with pytest.raises(ZeroDivisionError):
        delayed_reply.map(lambda value: value / 0).result()
