"""EndTxn in both transaction versions: every state, the current epoch and the one before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.coordinator.transaction.script import (
    CONFLICT,
    DATA,
    FIRST_ID,
    TIMEOUT_MS,
    WALL_MS,
    Script,
    began,
    ended,
)

from rota.coordinator.runtime.contract import Token
from rota.coordinator.transaction.events import EndTransaction, Producer
from rota.coordinator.transaction.state import EPOCHS_END, ProducerReply
from rota.coordinator.transaction.transitions import TransactionState
from rota.protocol.errors import ErrorCode

S, E = TransactionState, ErrorCode
UNMAPPED, FENCED, INVALID = E.INVALID_PRODUCER_ID_MAPPING, E.PRODUCER_FENCED, E.INVALID_TXN_STATE
MAX = EPOCHS_END + 1
BOTH = [True, False]


def in_state(state: TransactionState, version: int) -> Script:
    """The current epoch is 1 in every state."""
    script = Script()
    script.init()
    script.init()
    if state is not S.EMPTY:
        script.machine.hard = replace(
            script.value,
            state=state,
            partitions=(DATA,) if state not in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT) else (),
            client_version=version,
            start_ms=WALL_MS,
        )
    return script


# what Kafka answers in transaction version 0: commit, abort; None: the transaction is decided
OLD = {
    S.EMPTY: (INVALID, INVALID),
    S.ONGOING: (None, None),
    S.PREPARE_COMMIT: (CONFLICT, CONFLICT),
    S.PREPARE_ABORT: (CONFLICT, CONFLICT),
    S.COMPLETE_COMMIT: (E.NONE, INVALID),
    S.COMPLETE_ABORT: (INVALID, E.NONE),
}
# and in version 2, with the current epoch, and with the one before: a retry
CURRENT = {
    S.EMPTY: (INVALID, None),
    S.ONGOING: (None, None),
    S.PREPARE_COMMIT: (CONFLICT, CONFLICT),
    S.PREPARE_ABORT: (CONFLICT, CONFLICT),
    S.COMPLETE_COMMIT: (INVALID, None),
    S.COMPLETE_ABORT: (INVALID, None),
}
RETRY = {
    S.EMPTY: (FENCED, FENCED),
    S.ONGOING: (FENCED, FENCED),
    S.PREPARE_COMMIT: (CONFLICT, CONFLICT),
    S.PREPARE_ABORT: (CONFLICT, CONFLICT),
    S.COMPLETE_COMMIT: (E.NONE, INVALID),
    S.COMPLETE_ABORT: (INVALID, E.NONE),
}


@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize("is_commit", BOTH)
@pytest.mark.parametrize(
    ("version", "epoch", "table"),
    [(0, 1, OLD), (2, 1, CURRENT), (2, 0, RETRY)],
    ids=["old", "current", "retry"],
)
def test_each_state_has_kafkas_answer(
    state: S, is_commit: bool, version: int, epoch: int, table: dict[S, tuple[ErrorCode | None, ErrorCode | None]]
) -> None:
    script = in_state(state, version)
    before = script.value
    reply = script.end(is_commit, Producer(FIRST_ID, epoch), version)
    error = table[state][not is_commit]
    if error is None:
        assert script.state is (S.PREPARE_COMMIT if is_commit else S.PREPARE_ABORT)
        assert reply == ProducerReply(E.NONE, FIRST_ID, 2 if version == 2 else 1)
    else:
        assert reply.error is error
        assert script.value == before
        assert (reply.producer_id, reply.epoch) == ((FIRST_ID, 1) if error is E.NONE else (-1, -1))


@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize("version", [0, 2])
def test_a_wrong_producer_is_refused_in_every_state(state: S, version: int) -> None:
    script = in_state(state, version)
    before = script.value
    assert script.end(True, Producer(FIRST_ID + 5, 1), version).error is UNMAPPED
    assert script.end(True, Producer(FIRST_ID, 7), version).error is FENCED
    assert script.value == before


def test_an_unknown_transactional_id_is_refused() -> None:
    script = Script()
    assert script.end(True, Producer(1, 0)).error is UNMAPPED
    assert script.end(True, Producer(1, 0), version=2).error is UNMAPPED


def test_the_markers_have_the_partitions_and_the_new_epoch() -> None:
    script = began(DATA, ("more", 3), version=2)
    script.end(True, version=2)
    (markers,) = script.sent
    assert (markers.producer, markers.is_commit, markers.client_version) == (Producer(FIRST_ID, 1), True, 2)
    assert markers.partitions == (DATA, ("more", 3))


def test_the_old_version_keeps_the_epoch() -> None:
    script = began()
    assert script.end(False) == ProducerReply(E.NONE, FIRST_ID, 0)
    assert script.sent[0].producer.epoch == 0


def test_a_transaction_without_partitions_is_aborted_in_version_2() -> None:
    script = ended(is_commit=True, version=2)
    script.after(100)
    assert script.end(False, version=2) == ProducerReply(E.NONE, FIRST_ID, 2)
    assert (script.value.start_ms, script.sent[-1].partitions) == (WALL_MS + 100, ())
    script.written()
    assert script.state is S.COMPLETE_ABORT


def at_last_epoch() -> Script:
    script = Script()
    script.init()
    script.machine.hard = replace(script.value, producer_epoch=EPOCHS_END)
    script.add(DATA, version=2)
    return script


@pytest.mark.parametrize("is_commit", BOTH)
def test_the_end_of_the_last_epoch_gives_the_next_producer_id(is_commit: bool) -> None:
    script = at_last_epoch()
    last = script.producer
    assert script.end(is_commit, version=2) == ProducerReply(E.NONE, FIRST_ID + 1, 0)
    assert script.sent[0].producer == (FIRST_ID, MAX)
    assert (script.value.next_producer_id, script.value.producer_id) == (FIRST_ID + 1, FIRST_ID)
    assert script.end(is_commit, last, version=2).error is CONFLICT
    script.written(DATA)
    assert script.producer == (FIRST_ID + 1, 0)
    assert (script.value.previous_producer_id, script.value.next_producer_id) == (FIRST_ID, -1)
    assert script.end(is_commit, last, version=2) == ProducerReply(E.NONE, FIRST_ID + 1, 0)
    assert script.end(not is_commit, last, version=2).error is INVALID


def test_an_end_without_the_id_that_it_needs_is_repeated() -> None:
    """The coordinator drew none: the last epoch was given since it looked."""
    script = at_last_epoch()
    request = EndTransaction(token=Token(1), producer=script.producer, is_commit=True, client_version=2)
    assert script.step(request).error is CONFLICT
    assert script.state is S.ONGOING


def test_the_old_version_ends_the_last_epoch_without_a_new_id() -> None:
    script = at_last_epoch()
    assert script.end(True) == ProducerReply(E.NONE, FIRST_ID, EPOCHS_END)


@pytest.mark.parametrize("version", [0, 2])
def test_a_client_never_gets_or_uses_the_epoch_of_the_last_fence(version: int) -> None:
    """TXC2. A transaction of the last epoch timed out: only its markers have the epoch after it."""
    script = at_last_epoch()
    last = script.producer
    script.after(TIMEOUT_MS)
    script.written(DATA)
    fenced = script.producer
    assert fenced == (FIRST_ID, MAX)
    assert script.end(False, last, version).error is FENCED
    for producer in (last, fenced):
        assert script.add(DATA, producer=producer, version=version) is FENCED
        assert script.verify(DATA, producer=producer).error is FENCED
    assert script.end(False, fenced, version).error is FENCED
    assert script.state is S.COMPLETE_ABORT
    reply = script.init()
    assert (reply.error, reply.producer_id != FIRST_ID, reply.epoch) == (E.NONE, True, 0)


def test_an_abort_that_follows_a_commit_at_once_waits_for_its_markers() -> None:
    """The next transaction of the producer is aborted before a partition is in it."""
    script = began(version=2)
    script.end(True, version=2)
    assert script.end(False, version=2).error is CONFLICT
    script.written(DATA)
    assert script.end(False, version=2) == ProducerReply(E.NONE, FIRST_ID, 2)


@pytest.mark.parametrize("is_commit", BOTH)
@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_txc10_the_end_of_a_replaced_producer_is_no_retry(state: S, is_commit: bool) -> None:
    """The one that replaced it has version 0: after its end the epoch is still one above that of the replaced one."""
    script = in_state(state, version=0)
    assert script.end(is_commit, Producer(FIRST_ID, 0), version=2) == ProducerReply(FENCED)
