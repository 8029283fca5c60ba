"""What becomes of batches when their request is over."""

from __future__ import annotations

import pytest
from tests.unit.client.producer.kit import DELIVERY_MS, accumulator, answer, led, produce_results, put

from rota.client.errors import AuthenticationFailed, BrokerError, TimedOut, Unreachable, Unsupported
from rota.client.producer.accumulator import Accumulator
from rota.client.producer.batch import Batch, Failed, Written
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.produce import LeaderIdAndEpoch


def sent(of: Accumulator, *values: bytes) -> Batch:
    """A batch on the wire."""
    queue = led(of)
    for value in values or (b"1",):
        put(of, queue, value)
    (item,) = of.drain(1, 10)
    return item


def test_delivered() -> None:
    of = accumulator()
    item = sent(of)
    produce_results(of).answered([(item, answer(offset=5))], "1", (1,), 10)
    assert item.outcome == Written(5)
    assert of.used_bytes == 0


def test_with_acks_0_batches_are_written_when_sent() -> None:
    of = accumulator()
    item = sent(of)
    produce_results(of).sent([item])
    assert item.outcome == Written(-1)


def test_a_broken_connection_leaves_doubt_and_another_try() -> None:
    of = accumulator()
    item = sent(of)
    after = produce_results(of).unanswered([item], Unreachable("gone"), 10)
    assert after.stale
    assert item.maybe_written
    assert of.drain(1, 29) == []
    assert of.drain(1, 30) == [item]


def test_an_unsupported_version_fails_the_batch() -> None:
    of = accumulator()
    item = sent(of)
    assert produce_results(of).unanswered([item], Unsupported("old"), 10).failed == [item]
    assert isinstance(item.outcome, Failed)
    assert not item.outcome.maybe_written


def test_a_refused_authentication_fails_the_batch_that_may_be_written() -> None:
    """The session of an open connection may have ended after the broker had the batch."""
    of = accumulator()
    item = sent(of)
    assert produce_results(of).unanswered([item], AuthenticationFailed("revoked"), 10).failed == [item]
    assert isinstance(item.outcome, Failed)
    assert item.outcome.maybe_written


def test_a_moved_leader_is_followed_at_once() -> None:
    of = accumulator()
    item = sent(of)
    moved = answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=1))
    assert produce_results(of).answered([(item, moved)], "1", (1, 2), 10).stale
    assert of.drain(2, 10) == [item]


def test_an_unknown_new_leader_requests_a_metadata_refresh() -> None:
    of = accumulator()
    item = sent(of)
    moved = answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=9, leader_epoch=1))
    assert produce_results(of).answered([(item, moved)], "1", (1,), 10).stale
    assert of.ready(10).nodes == ()


def test_an_answer_that_leaves_a_batch_out() -> None:
    of = accumulator()
    item = sent(of)
    produce_results(of).answered([(item, None)], "1", (1,), 10)
    assert item.maybe_written
    assert of.drain(1, 30) == [item]


def test_too_large_is_split() -> None:
    of = accumulator()
    item = sent(of, b"1", b"2")
    after = produce_results(of).answered([(item, answer(ErrorCode.MESSAGE_TOO_LARGE))], "1", (1,), 10)
    assert [text for text, _ in after.notes]
    assert len(of.incomplete) == 2


def test_a_fatal_code_fails_the_batch_with_the_brokers_words() -> None:
    of = accumulator()
    item = sent(of)
    produce_results(of).answered([(item, answer(ErrorCode.POLICY_VIOLATION, message="not today"))], "1", (1,), 10)
    assert isinstance(item.outcome, Failed)
    assert isinstance(item.outcome.cause, BrokerError)
    assert not item.outcome.maybe_written
    assert "not today" in str(item.outcome.cause)


def test_retries_have_an_end() -> None:
    of = accumulator()
    item = sent(of)
    settle = produce_results(of, retries=1)
    settle.answered([(item, answer(ErrorCode.NOT_ENOUGH_REPLICAS))], "1", (1,), 10)
    assert of.drain(1, 100) == [item]
    after = settle.answered([(item, answer(ErrorCode.NOT_ENOUGH_REPLICAS))], "1", (1,), 100)
    assert after.failed == [item]


@pytest.mark.parametrize("code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT])
def test_an_expired_batch_has_its_last_error_and_whether_it_may_be_written(code: ErrorCode) -> None:
    of = accumulator()
    item = sent(of)
    settle = produce_results(of)
    settle.answered([(item, answer(code))], "1", (1,), 10)
    assert settle.expire(DELIVERY_MS - 1).failed == []
    assert settle.expire(DELIVERY_MS).failed == [item]
    assert isinstance(item.outcome, Failed)
    assert item.outcome.maybe_written is (code == ErrorCode.REQUEST_TIMED_OUT)
    assert isinstance(item.outcome.cause, TimedOut)
    assert code.name in str(item.outcome.cause)
    assert "delivery_timeout_ms" in str(item.outcome.cause)


def test_without_a_leader_that_is_the_reason() -> None:
    of = accumulator()
    queue = led(of)
    item = put(of, queue, b"1")
    queue.lead(None, 1)
    produce_results(of).expire(DELIVERY_MS)
    assert isinstance(item.outcome, Failed)
    assert "no leader is known for t-0" in str(item.outcome.cause)


def test_an_expired_batch_names_the_connection_failure_of_its_node() -> None:
    of = accumulator()
    item = put(of, led(of), b"1")
    settle = produce_results(of)
    settle.note(1, Unreachable("refused"))
    settle.expire(DELIVERY_MS)
    assert isinstance(item.outcome, Failed)
    assert "refused" in str(item.outcome.cause)


def test_abandon_untried_fails_only_batches_that_were_never_sent() -> None:
    of = accumulator()
    tried = sent(of)
    untried = put(of, led(of), b"2")
    settle = produce_results(of)
    assert settle.abandon(Unsupported("no"), untried=True).failed == [untried]
    assert settle.abandon(TimedOut("closed")).failed == [tried]
    assert isinstance(tried.outcome, Failed)
    assert tried.outcome.maybe_written


def test_an_answer_after_the_end_changes_nothing() -> None:
    of = accumulator(idempotent=True)
    item = sent(of)
    settle = produce_results(of)
    settle.expire(DELIVERY_MS)
    outcome = item.outcome
    assert settle.answered([(item, answer(ErrorCode.NOT_ENOUGH_REPLICAS))], "1", (1,), DELIVERY_MS).failed == []
    assert item.outcome is outcome
    assert of.used_bytes == 0
