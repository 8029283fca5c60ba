"""Markers that come back, the timeout, and what a record holds."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.transaction.script import DATA, FIRST_ID, OTHER, TIMEOUT_MS, Script, began, ended

from rota.coordinator.transaction.events import Producer
from rota.coordinator.transaction.transitions import TransactionState
from rota.protocol.errors import ErrorCode

S = TransactionState


def test_the_transaction_is_complete_when_every_marker_is_written() -> None:
    script = began(DATA, OTHER)
    script.end(True)
    script.written(OTHER)
    assert script.state is S.PREPARE_COMMIT
    script.written(OTHER)  # a response that came twice
    assert script.state is S.PREPARE_COMMIT
    script.written(DATA)
    assert (script.state, script.value.partitions) == (S.COMPLETE_COMMIT, ())


def test_markers_of_another_epoch_change_nothing() -> None:
    script = began()
    script.end(True)
    producer_id, epoch = script.producer
    script.written(DATA, producer=Producer(producer_id, epoch - 1))
    script.written(DATA, producer=Producer(producer_id + 1, epoch))
    assert script.state is S.PREPARE_COMMIT


def test_markers_that_come_late_change_nothing() -> None:
    script = ended(is_commit=True)
    records = len(script.log)
    script.written(DATA)
    script.add(DATA)
    script.written(DATA)
    assert script.state is S.ONGOING
    assert len(script.log) == records + 1


def test_a_transaction_is_aborted_when_its_time_is_over() -> None:
    script = began()
    script.after(TIMEOUT_MS - 1)
    assert script.state is S.ONGOING
    script.after(1)
    assert (script.state, script.producer) == (S.PREPARE_ABORT, (FIRST_ID, 1))
    assert (script.sent[0].is_commit, script.sent[0].producer.epoch) == (False, 1)
    assert script.notes == ["Aborting a transaction that timed out"]
    assert script.end(True, Producer(FIRST_ID, 0)).error is ErrorCode.PRODUCER_FENCED


def test_the_time_of_a_transaction_begins_with_its_first_partition() -> None:
    script = began()
    script.after(TIMEOUT_MS // 2)
    script.add(OTHER)
    script.end(True)
    script.written(DATA, OTHER)
    script.add(DATA)  # half a timeout later: the timer of the first one is still set
    script.after(TIMEOUT_MS // 2)
    assert script.state is S.ONGOING
    script.after(TIMEOUT_MS // 2)
    assert script.state is S.PREPARE_ABORT


def test_the_timer_of_a_transaction_that_ended_does_nothing() -> None:
    script = ended(is_commit=True)
    script.after(10 * TIMEOUT_MS)
    assert (script.state, script.timer_ms) == (S.COMPLETE_COMMIT, None)


def test_a_shorter_timeout_moves_the_timer() -> None:
    script = ended(is_commit=True)
    script.init(timeout_ms=10)
    script.add(DATA)
    script.after(10)
    assert script.state is S.PREPARE_ABORT


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_next_transaction_after_an_end_in_version_2_has_the_new_epoch(is_commit: bool) -> None:
    script = ended(is_commit, version=2)
    assert script.add(DATA, producer=Producer(FIRST_ID, 0), version=2) is ErrorCode.PRODUCER_FENCED
    assert script.add(DATA, producer=Producer(FIRST_ID, 1), version=2) is ErrorCode.NONE


def test_a_new_id_is_vacant() -> None:
    script = Script()
    assert script.machine.is_vacant
    assert not script.machine.is_ending
    assert script.machine.machine_id == "t"
