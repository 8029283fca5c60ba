"""Nothing is lost, nothing that is final is asked again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.admin.outcomes import UNKNOWN, Answer, Outcomes, Place
from rota.client.errors import AdminFailed, BrokerError, KafkaError, TimedOut, UnknownTopic
from rota.protocol.errors import ErrorCode

EXISTS, AGAIN, THROTTLED = ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NOT_CONTROLLER, 89
names = st.sampled_from("abcde")
codes = st.sampled_from([0, EXISTS, AGAIN, THROTTLED, 3, 999, -1])


def outcomes(*things: str, final: frozenset[ErrorCode] = frozenset()) -> Outcomes[str, int]:
    return Outcomes("creating topics", 19, things, Place, final=final, remedies={EXISTS: "Choose another."})


@given(answers=st.lists(st.tuples(names, codes)))
def test_each_thing_is_done_or_failed_in_the_end(answers: list[tuple[str, int]]) -> None:
    asked = outcomes(*"abcde")
    for position, (name, code) in enumerate(answers):
        before = name in asked.open()
        again = asked.take(Answer(name, code, position))
        assert bool(again) == (before and name in asked.open())
    asked.give_up()
    assert not asked.open()
    assert {*asked.done} | {*asked.failed} == {*"abcde"}
    assert not {*asked.done} & {*asked.failed}


@given(answers=st.lists(st.tuples(names, codes)))
def test_the_first_final_answer_counts(answers: list[tuple[str, int]]) -> None:
    asked, first = outcomes(*"abcde"), dict[str, int]()
    for name, code in answers:
        if not asked.take(Answer(name, code, code)):
            first.setdefault(name, code)
    assert {name for name, code in first.items() if code == 0} == set(asked.done)
    assert {name: ErrorCode.of(code) for name, code in first.items() if code} == {
        name: error.code for name, error in asked.failed.items() if isinstance(error, BrokerError)
    }


def test_results_come_in_the_order_of_the_question() -> None:
    asked = outcomes("b", "a")
    asked.succeed("a", 1)
    asked.succeed("b", 2)
    assert list(asked.results().items()) == [("b", 2), ("a", 1)]


def test_a_failure_names_what_failed_and_what_to_do_and_keeps_what_worked() -> None:
    asked = outcomes("a", "b")
    asked.succeed("a", 1)
    asked.take(Answer("b", EXISTS, 0, "Topic 'b' already exists."))
    with pytest.raises(AdminFailed) as failed:
        asked.results()
    assert failed.value.done == {"a": 1}
    assert failed.value.codes == {EXISTS}
    assert str(failed.value) == (
        "creating topics: 1 of 2 failed: creating topics (b): TOPIC_ALREADY_EXISTS (36): Topic 'b' already exists. "
        "Choose another."
    )


def test_many_failures_make_a_short_message() -> None:
    asked = outcomes(*(f"t{number}" for number in range(100)))
    asked.give_up(KafkaError("away"))
    asked.succeed("t0", 1)
    with pytest.raises(AdminFailed) as failed:
        asked.results()
    assert len(str(failed.value)) < 200
    assert len(failed.value.failed) == 99


def test_what_ends_the_whole_call_is_raised_as_itself() -> None:
    asked, late = outcomes("a", "b"), TimedOut("late")
    asked.give_up(late)
    with pytest.raises(TimedOut) as raised:
        asked.results()
    assert raised.value is late


def test_the_last_code_says_more_than_the_timeout() -> None:
    asked = outcomes("a", "b")
    assert asked.take(Answer("a", AGAIN, 0)) == AGAIN
    asked.give_up(TimedOut("late"))
    with pytest.raises(AdminFailed) as failed:
        asked.results()
    assert failed.value.codes == {AGAIN}
    assert isinstance(failed.value.failed["b"], TimedOut)


def test_what_no_answer_speaks_of_fails() -> None:
    with pytest.raises(KafkaError, match="says nothing of a"):
        outcomes("a").results()


def test_what_is_unknown_is_asked_again_unless_it_is_final() -> None:
    unknown = Answer("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    assert outcomes("a").take(unknown) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    told_once = outcomes("a", final=UNKNOWN)
    assert told_once.take(unknown) == 0
    assert isinstance(told_once.failed["a"], UnknownTopic)


def test_what_was_done_can_still_fail_at_a_later_step() -> None:
    asked = outcomes("a")
    asked.succeed("a", 1)
    asked.fail("a", TimedOut("a is not visible"))
    assert (asked.done, list(asked.failed)) == ({}, ["a"])
