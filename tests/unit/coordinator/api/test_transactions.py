"""A transaction from the first to the last request, on one broker, with its records."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.transaction_world import TransactionWorld

from rota.coordinator.api.transactions import fenced_code, replied
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode

E = ErrorCode


@pytest.mark.parametrize("committed", [True, False])
def test_records_are_stable_when_the_transaction_has_ended(committed: bool) -> None:
    world = TransactionWorld()
    producer = world.began()
    assert world.produce(producer) is E.NONE
    assert world.partition().last_stable_offset == 0
    assert world.end(producer, committed)[0] is E.NONE
    assert world.state() == ("CompleteCommit" if committed else "CompleteAbort")
    assert world.partition().last_stable_offset == world.partition().high_watermark == 2  # the record, the marker


def test_a_producer_of_version_2_adds_no_partition_and_has_a_new_epoch_after_each_end() -> None:
    world = TransactionWorld()
    _, producer_id, epoch = world.init()
    for _ in range(3):
        assert world.produce((producer_id, epoch), version=12) is E.NONE
        assert world.end((producer_id, epoch), version=5) == (E.NONE, producer_id, epoch + 1)
        assert world.state() == "CompleteCommit"
        epoch += 1
    assert world.partition().last_stable_offset == 6


def test_a_record_outside_of_the_transaction_is_refused() -> None:
    world = TransactionWorld()
    _, *producer = world.init()
    mine = producer[0], producer[1]
    assert world.produce(mine, version=10) is E.INVALID_TXN_STATE
    assert world.produce(mine, version=11) is E.TRANSACTION_ABORTABLE
    assert world.partition().high_watermark == 0


def test_a_producer_that_was_replaced_writes_nothing_more() -> None:
    world = TransactionWorld()
    old = world.began()
    assert world.produce(old) is E.NONE
    assert world.init()[0] is E.CONCURRENT_TRANSACTIONS
    error, producer_id, epoch = world.init()
    assert (error, epoch) == (E.NONE, 2)
    assert world.produce(old, sequence=1) is E.INVALID_PRODUCER_EPOCH
    assert world.produce((producer_id, epoch), version=12) is E.NONE


def test_a_transaction_that_timed_out_is_aborted() -> None:
    world = TransactionWorld()
    producer = world.began()
    assert world.produce(producer) is E.NONE
    world.after(60_000)
    world.turn()
    assert world.state() == "CompleteAbort"
    assert world.partition().last_stable_offset == 2
    assert world.end(producer)[0] is E.PRODUCER_FENCED


def test_a_topic_that_was_deleted_needs_no_marker() -> None:
    from rota.coordinator.metadata import eager_tasks

    world = TransactionWorld()
    producer = world.began()
    eager_tasks.run_eagerly(world.node.topics.delete("t"))
    assert world.end(producer)[0] is E.NONE
    assert world.state() == "CompleteCommit"


def test_old_versions_know_one_code_for_a_fenced_producer() -> None:
    assert fenced_code(E.PRODUCER_FENCED, 1, 2) is E.INVALID_PRODUCER_EPOCH
    assert fenced_code(E.PRODUCER_FENCED, 2, 2) is E.PRODUCER_FENCED
    assert fenced_code(E.INVALID_TXN_STATE, 1, 2) is E.INVALID_TXN_STATE


def test_a_reply_becomes_a_response_now_or_later() -> None:
    assert replied(1, str) == "1"
    reply: DelayedReply[int] = DelayedReply()
    response = replied(reply, str)
    assert isinstance(response, DelayedReply)
    reply.answer(2)
    assert response.value == "2"
