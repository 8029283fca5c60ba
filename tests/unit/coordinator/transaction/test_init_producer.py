"""InitProducerId: epochs, fencing, retries. What each request answers is what Apache Kafka 4.3.1 answered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.coordinator.transaction.script import CONFLICT, DATA, FIRST_ID, Script, began, ended

from rota.coordinator.runtime.contract import Token
from rota.coordinator.transaction.events import InitProducer, Producer
from rota.coordinator.transaction.state import EPOCHS_END, ProducerReply
from rota.coordinator.transaction.transitions import TransactionState
from rota.protocol.errors import ErrorCode

S = TransactionState
FENCED = ProducerReply(ErrorCode.PRODUCER_FENCED)


def given(producer_id: int, epoch: int) -> ProducerReply:
    return ProducerReply(ErrorCode.NONE, producer_id, epoch)


def at_epoch(epoch: int) -> Script:
    script = Script()
    script.init()
    script.machine.hard = replace(script.value, producer_epoch=epoch)
    return script


def test_the_first_request_draws_an_id_and_each_later_one_a_new_epoch() -> None:
    script = Script()
    assert [script.init() for _ in range(3)] == [given(FIRST_ID, epoch) for epoch in range(3)]
    assert script.state is S.EMPTY


def test_a_producer_continues_with_the_next_epoch_and_its_retry_gets_the_same() -> None:
    script = Script()
    script.init()
    assert script.init(Producer(FIRST_ID, 0)) == given(FIRST_ID, 1)
    assert script.init(Producer(FIRST_ID, 0)) == given(FIRST_ID, 1)
    assert script.init(Producer(FIRST_ID, 1)) == given(FIRST_ID, 2)


def test_a_producer_that_was_replaced_is_fenced() -> None:
    script = Script()
    script.init()
    script.init()  # another process
    assert script.init(Producer(FIRST_ID, 0)) == FENCED
    assert script.init(Producer(FIRST_ID, 5)) == FENCED
    assert script.init(Producer(FIRST_ID + 77, 1)) == FENCED
    assert script.producer == (FIRST_ID, 1)


def test_an_ongoing_transaction_is_aborted_first_and_the_request_is_repeated() -> None:
    script = began()
    old = script.producer
    assert script.init() == ProducerReply(CONFLICT)
    assert (script.state, script.producer) == (S.PREPARE_ABORT, (FIRST_ID, 1))
    assert [(sent.is_commit, sent.partitions) for sent in script.sent] == [(False, (DATA,))]
    assert script.init() == ProducerReply(CONFLICT)
    script.written(DATA)
    assert script.init() == given(FIRST_ID, 2)
    assert script.add(DATA, producer=old) is ErrorCode.PRODUCER_FENCED


def test_the_producer_whose_own_request_aborted_its_transaction_gets_the_epoch_of_the_abort() -> None:
    script = began(version=2)
    old = script.producer
    assert script.init(old) == ProducerReply(CONFLICT)
    script.written(DATA)
    assert script.init(old) == given(FIRST_ID, 1)


@pytest.mark.parametrize("has_epoch", [False, True])
def test_txc2_a_replaced_producer_is_refused_once_the_other_one_has_its_epoch(has_epoch: bool) -> None:
    """As Apache Kafka answers: tests/interop/transaction_apis/zombies.py."""
    script = began(version=2)
    old = script.producer
    assert script.init() == ProducerReply(CONFLICT), "another producer, which asks again"
    script.written(DATA)
    if has_epoch:
        assert script.init() == given(FIRST_ID, 2)
        assert script.init(old) == FENCED
        assert script.end(False, old, version=2) == FENCED
        return
    assert script.end(False, old, version=2) == given(FIRST_ID, 1)
    assert script.end(True, old, version=2) == ProducerReply(ErrorCode.INVALID_TXN_STATE)
    assert script.init(old) == given(FIRST_ID, 1)
    assert script.init() == given(FIRST_ID, 2), "the other producer fences it"
    assert script.init(old) == FENCED


def test_a_zombie_aborts_no_transaction_of_the_producer_that_replaced_it() -> None:
    """TXC2. Apache Kafka aborts it, fences both producers, and refuses the zombie when it repeats its request."""
    script = Script()
    script.init()
    script.init()  # another process
    script.add(DATA)
    before = script.value
    for zombie in (Producer(FIRST_ID, 0), Producer(FIRST_ID, 9)):
        assert script.init(zombie) == FENCED
    assert script.value == before
    assert script.init(script.producer) == ProducerReply(CONFLICT)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_that_is_ending_is_waited_for(is_commit: bool) -> None:
    script = began()
    script.end(is_commit)
    before = script.value
    assert script.init() == ProducerReply(CONFLICT)
    assert script.value == before


def test_the_producer_id_changes_when_its_epochs_are_used_up() -> None:
    script = at_epoch(EPOCHS_END - 1)
    assert script.init() == given(FIRST_ID, EPOCHS_END)
    assert script.init() == given(FIRST_ID + 1, 0)
    assert script.value.previous_producer_id == FIRST_ID


def test_a_retry_of_the_request_that_changed_the_producer_id_gets_the_new_id_again() -> None:
    script = at_epoch(EPOCHS_END)
    last = script.producer
    assert script.init(last) == given(FIRST_ID + 1, 0)
    assert script.init(last) == given(FIRST_ID + 1, 0)
    assert script.init(Producer(FIRST_ID, 3)) == FENCED


def test_the_producer_id_changes_after_the_last_epoch_was_fenced() -> None:
    script = at_epoch(EPOCHS_END)
    last = script.producer
    script.add(DATA)
    script.init()
    assert script.producer.epoch == EPOCHS_END + 1  # of the marker alone
    script.written(DATA)
    assert script.init(last) == given(script.next_id - 1, 0)
    assert script.producer.producer_id != last.producer_id


def test_a_request_without_an_id_that_it_needs_is_repeated() -> None:
    """The coordinator drew none: the state has changed since it looked."""
    script = Script()
    request = InitProducer(token=Token(1), timeout_ms=1)
    assert script.step(request) == ProducerReply(CONFLICT)
    assert script.machine.is_vacant
    script = at_epoch(EPOCHS_END)
    assert script.step(request) == ProducerReply(CONFLICT)
    assert script.producer == (FIRST_ID, EPOCHS_END)


def test_the_timeout_is_that_of_the_newest_request() -> None:
    script = ended(is_commit=True)
    script.init(timeout_ms=5)
    assert (script.value.timeout_ms, script.value.start_ms, script.value.partitions) == (5, -1, ())
