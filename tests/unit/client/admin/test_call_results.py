"""Nothing is lost, nothing that is final is results again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.admin.call_results import UNKNOWN_TOPIC_CODES, CallResults, ErrorContext, KeyResult
from rota.client.admin.configs import ConfigResource, ResourceType
from rota.client.errors import AdminFailed, BrokerError, KafkaError, TimedOut, UnknownTopic
from rota.protocol.errors import ErrorCode

EXISTS, RETRIED, THROTTLED = ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NOT_CONTROLLER, 89
names = st.sampled_from("abcde")
codes = st.sampled_from([0, EXISTS, RETRIED, THROTTLED, 3, 999, -1])


def new_results(*things: str, final: frozenset[ErrorCode] = frozenset()) -> CallResults[str, int]:
    return CallResults("creating topics", 19, things, ErrorContext, final=final, remedies={EXISTS: "Choose another."})


@given(answers=st.lists(st.tuples(names, codes)))
def test_each_key_is_done_or_failed_at_the_end(answers: list[tuple[str, int]]) -> None:
    results = new_results(*"abcde")
    for position, (name, code) in enumerate(answers):
        before = name in results.pending()
        again = results.record(KeyResult(name, code, position))
        assert bool(again) == (before and name in results.pending())
    results.fail_pending()
    assert not results.pending()
    assert {*results.done} | {*results.failed} == {*"abcde"}
    assert not {*results.done} & {*results.failed}


@given(answers=st.lists(st.tuples(names, codes)))
def test_the_first_final_result_has_effect(answers: list[tuple[str, int]]) -> None:
    results, first = new_results(*"abcde"), dict[str, int]()
    for name, code in answers:
        if not results.record(KeyResult(name, code, code)):
            first.setdefault(name, code)
    assert {name for name, code in first.items() if code == 0} == set(results.done)
    assert {name: ErrorCode.of(code) for name, code in first.items() if code} == {
        name: error.code for name, error in results.failed.items() if isinstance(error, BrokerError)
    }


def test_results_have_the_order_of_the_keys() -> None:
    results = new_results("b", "a")
    results.succeed("a", 1)
    results.succeed("b", 2)
    assert list(results.all_or_raise().items()) == [("b", 2), ("a", 1)]


def test_a_failure_names_key_and_remedy_and_keeps_successes() -> None:
    results = new_results("a", "b")
    results.succeed("a", 1)
    results.record(KeyResult("b", EXISTS, 0, "Topic 'b' already exists."))
    with pytest.raises(AdminFailed) as failed:
        results.all_or_raise()
    assert failed.value.done == {"a": 1}
    assert failed.value.codes == {EXISTS}
    assert str(failed.value) == (
        "creating topics: 1 of 2 failed: (b): TOPIC_ALREADY_EXISTS (36): Topic 'b' already exists. Choose another."
    )


def test_a_failure_of_the_only_key_is_said_once() -> None:
    results = new_results("b")
    results.record(KeyResult("b", EXISTS, 0, "Topic 'b' already exists."))
    with pytest.raises(AdminFailed, match=r"^creating topics \(b\): TOPIC_ALREADY_EXISTS") as failed:
        results.all_or_raise()
    assert str(failed.value).count("creating topics") == 1
    assert str(AdminFailed("creating topics", {}, {"c": KafkaError("away")})) == "creating topics: c: away"
    away = KafkaError("127.0.0.1:9092: no answer")
    assert str(AdminFailed("listing groups", {}, {"1": away})) == f"listing groups: 1: {away}", (
        "no name is a part of one"
    )
    assert str(AdminFailed("listing groups", {}, {"9092": away})) == f"listing groups: {away}"
    resource = ConfigResource(ResourceType.TOPIC, "t")
    unknown = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "describing configs", topic="t")
    assert str(AdminFailed("describing configs", {}, {resource: unknown})) == str(unknown)


def test_many_failures_make_a_short_message() -> None:
    results = new_results(*(f"t{number}" for number in range(100)))
    results.fail_pending(KafkaError("away"))
    results.succeed("t0", 1)
    with pytest.raises(AdminFailed) as failed:
        results.all_or_raise()
    assert len(str(failed.value)) < 200
    assert len(failed.value.failed) == 99


def test_an_error_of_the_whole_call_is_raised_unchanged() -> None:
    results, late = new_results("a", "b"), TimedOut("late")
    results.fail_pending(late)
    with pytest.raises(TimedOut) as raised:
        results.all_or_raise()
    assert raised.value is late


def test_the_last_code_takes_precedence_over_the_timeout() -> None:
    results = new_results("a", "b")
    assert results.record(KeyResult("a", RETRIED, 0)) == RETRIED
    results.fail_pending(TimedOut("late"))
    with pytest.raises(AdminFailed) as failed:
        results.all_or_raise()
    assert failed.value.codes == {RETRIED}
    assert isinstance(failed.value.failed["b"], TimedOut)


def test_a_key_without_a_result_fails() -> None:
    with pytest.raises(KafkaError, match="says nothing of a"):
        new_results("a").all_or_raise()


def test_unknown_topic_is_retried_unless_it_is_final() -> None:
    unknown = KeyResult("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    assert new_results("a").record(unknown) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    not_retried = new_results("a", final=UNKNOWN_TOPIC_CODES)
    assert not_retried.record(unknown) == 0
    assert isinstance(not_retried.failed["a"], UnknownTopic)


def test_a_done_key_can_fail_at_a_later_step() -> None:
    results = new_results("a")
    results.succeed("a", 1)
    results.fail("a", TimedOut("a is not visible"))
    assert (results.done, list(results.failed)) == ({}, ["a"])
