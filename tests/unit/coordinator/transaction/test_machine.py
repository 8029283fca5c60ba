"""A crash after each step, and the expiry of ids."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.coordinator.transaction.script import DATA, OTHER, TIMEOUT_MS, Script, began, ended

from rota.coordinator.transaction.transitions import TransactionState
from rota.protocol.errors import ErrorCode

S = TransactionState
DAY_MS = 86_400_000


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("version", [0, 2])
def test_a_decision_is_completed_after_a_crash(is_commit: bool, version: int) -> None:
    script = began(DATA, OTHER, version=version)
    script.end(is_commit, version=version)
    script.written(DATA)
    before = script.value
    script.crash()
    assert script.value == before
    assert script.sent[-1].partitions == (DATA, OTHER)  # which marker was written is not stored: both again
    assert script.sent[-1] == script.sent[0]
    script.written(DATA, OTHER)
    assert script.state is (S.COMPLETE_COMMIT if is_commit else S.COMPLETE_ABORT)


@pytest.mark.parametrize("make", [Script, began, lambda: ended(True), lambda: ended(False, version=2)])
def test_a_load_gives_the_same_durable_state_and_sends_nothing_that_is_not_decided(make: type[Script]) -> None:
    script = make()
    before, sent = script.machine.describe(), len(script.sent)
    script.crash()
    assert script.machine.describe() == before
    assert len(script.sent) == sent


def test_an_ongoing_transaction_keeps_its_deadline_through_a_crash() -> None:
    script = began()
    script.after(TIMEOUT_MS - 10)
    script.crash()
    script.after(9)
    assert script.state is S.ONGOING
    script.after(1)
    assert script.state is S.PREPARE_ABORT


def test_a_transaction_that_timed_out_while_the_broker_was_down_is_aborted_at_once() -> None:
    script = began()
    script.now_ms += 10 * TIMEOUT_MS
    script.crash()
    script.after(0)
    assert script.state is S.PREPARE_ABORT


def test_a_broker_whose_clock_is_behind_keeps_a_transaction_no_longer_than_its_timeout() -> None:
    """TXC9. The broker that began the transaction had a clock that was a day ahead."""
    script = began()
    value = script.value
    script.log[-1].value = replace(value, start_ms=value.start_ms + 24 * 3_600_000)
    script.crash()
    script.after(TIMEOUT_MS)
    assert script.state is S.PREPARE_ABORT


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_id_expires_after_its_last_use(is_commit: bool) -> None:
    script = ended(is_commit)
    script.now_ms += DAY_MS - 1
    script.expire(DAY_MS)
    assert not script.machine.is_vacant
    script.now_ms += 1
    script.expire(DAY_MS)
    assert script.machine.is_vacant
    assert script.log[-1].value is None
    script.crash()
    assert script.machine.is_vacant
    assert script.init().error is ErrorCode.NONE


def test_an_id_with_a_transaction_does_not_expire() -> None:
    script = began()
    script.now_ms += 2 * DAY_MS
    script.expire(DAY_MS)
    assert script.state is S.ONGOING
    script.end(True)
    script.now_ms += 2 * DAY_MS
    script.expire(DAY_MS)
    assert script.state is S.PREPARE_COMMIT


def test_an_id_that_does_not_exist_does_not_expire() -> None:
    script = Script()
    script.expire(0)
    assert script.log == []
