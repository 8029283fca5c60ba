"""G4: exactly one answer, whoever asks for it first; those who go are answers about."""

from __future__ import annotations

import pytest

from rota.coordinator.scheduling.delayed_reply import DelayedReply, all_of, gather


def test_a_waiting_callback_gets_the_answer() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    answers: list[int] = []
    delayed_reply.then(answers.append)
    assert not delayed_reply.answered
    delayed_reply.answer(7)
    assert (answers, delayed_reply.value) == ([7], 7)


def test_a_callback_added_after_the_answer_runs_at_once() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    delayed_reply.answer(7)
    answers: list[int] = []
    delayed_reply.then(answers.append)
    assert answers == [7]


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


def test_shapes_are_applied_in_the_order_of_their_calls() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    shaped = delayed_reply.map(lambda value: value + 1).map(str)
    delayed_reply.answer(7)
    assert shaped.value == "8"


def test_an_exception_of_a_map_is_raised_through_further_maps() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    delayed_reply.answer(7)
    shaped = delayed_reply.map(lambda value: value // 0).map(str)
    with pytest.raises(ZeroDivisionError):
        shaped.result()


def test_abandon_calls_the_callback_once_also_through_a_map() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    expired: list[str] = []
    delayed_reply.on_abandon(lambda: expired.append("gone"))
    shaped = delayed_reply.map(str)
    shaped.abandon()
    shaped.abandon()
    assert expired == ["gone"]


def test_expedite_calls_the_callback_once_also_through_a_map_and_not_after_the_answer() -> None:
    expedited: list[int] = []
    for answers in (False, True):
        delayed_reply: DelayedReply[int] = DelayedReply()
        delayed_reply.on_expedite(lambda: expedited.append(1))
        shaped = delayed_reply.map(str)
        if answers:
            delayed_reply.answer(7)
        shaped.expedite()
        shaped.expedite()
    assert expedited == [1]


def test_abandon_after_the_answer_has_no_effect() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    expired: list[str] = []
    delayed_reply.on_abandon(lambda: expired.append("gone"))
    delayed_reply.answer(7)
    delayed_reply.abandon()
    assert expired == []


def test_an_error_in_a_map_function_becomes_the_value() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()

    def mistaken(value: int) -> str:
        raise RuntimeError("no shape")

    shaped = delayed_reply.map(mistaken)
    delayed_reply.answer(7)
    assert isinstance(shaped.value, RuntimeError)


def test_result_returns_the_value_or_raises_its_error() -> None:
    delayed_reply: DelayedReply[int] = DelayedReply()
    delayed_reply.answer(7)
    assert delayed_reply.result() == 7
    with pytest.raises(ZeroDivisionError):
        delayed_reply.map(lambda value: value / 0).result()


def test_all_replies_are_one_reply_when_the_last_is_given() -> None:
    one, two = DelayedReply[int](), DelayedReply[int]()
    one.answer(1)
    whole = all_of([one, 5, two])
    assert not whole.answered
    two.answer(2)
    assert whole.value == [1, 5, 2]
    assert all_of([3, one]).value == [3, 1]
    assert all_of([]).value == []


def test_what_is_made_of_several_replies_waits_for_the_last() -> None:
    one = DelayedReply[int]()
    assert gather([1, 2], sum) == 3
    whole = gather([one, 5], sum)
    assert isinstance(whole, DelayedReply)
    assert not whole.answered
    one.answer(1)
    assert whole.value == 6
