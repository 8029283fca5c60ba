"""EndTxn: commit or abort.

Before version 5 (transaction version 0) the producer keeps its epoch. From version 5 on (transaction version 2,
KIP-890) each end has a new epoch, which the reply brings; so the current epoch means the next request and the epoch
before it a retry, and a transaction without partitions can be aborted.

Law
    TXC10 A producer that was replaced is given no epoch, also when the one that replaced it does not bump epochs.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.transaction.events import EndTransaction
from rota.coordinator.transaction.state import (
    BUMPING,
    EPOCHS_END,
    NO_PRODUCER_ID,
    ProducerReply,
    Step,
    TransactionalId,
    TransactionValue,
)
from rota.coordinator.transaction.transitions import ENDING, TransactionState
from rota.protocol.errors import ErrorCode

_S: Final = TransactionState
_COMPLETED: Final = {True: _S.COMPLETE_COMMIT, False: _S.COMPLETE_ABORT}


def end_transaction(machine: TransactionalId, event: EndTransaction, step: Step) -> None:
    """Decide the transaction. NONE is answered when the decision is durable; the markers are written afterwards."""
    hard = machine.hard
    if hard is None:
        error: ErrorCode | None = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    elif event.producer.epoch > EPOCHS_END:
        error = ErrorCode.PRODUCER_FENCED
    elif event.client_version >= BUMPING:
        error = _answer_bumping(hard, event)
    else:
        error = _answer(hard, event)
    if error is None and hard is not None:
        error = _prepare(machine, hard, event, step)
    current = machine.hard
    if error is ErrorCode.NONE and current is not None:
        step.reply(event.token, ProducerReply(error, *_client_producer(current)))
    else:
        step.reply(event.token, ProducerReply(error or ErrorCode.UNKNOWN_SERVER_ERROR))


def _client_producer(value: TransactionValue) -> tuple[int, int]:
    """Return what the producer uses next: with the last epoch it gets the next producer id, before that is in use."""
    if value.next_producer_id != NO_PRODUCER_ID:
        return value.next_producer_id, 0
    return value.producer_id, value.producer_epoch


def _answer(hard: TransactionValue, event: EndTransaction) -> ErrorCode | None:
    """Return the error, or NONE for what is done already; None to decide the transaction now."""
    if hard.producer_id != event.producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if hard.producer_epoch != event.producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    if hard.state is _S.ONGOING:
        return None
    return _repeated(hard, event)


def _answer_bumping(hard: TransactionValue, event: EndTransaction) -> ErrorCode | None:
    """Do as `_answer` for a transaction whose end has a new epoch.

    The current epoch while the transaction is ending is that of the next transaction (KAFKA-18464): it has to wait.
    """
    producer_id, epoch = event.producer
    is_current = epoch == hard.producer_epoch
    has_rotated = hard.previous_producer_id == producer_id and epoch == EPOCHS_END and hard.producer_epoch == 0
    has_bumped = hard.client_version >= BUMPING  # else the epoch is that of a producer which replaced this one (TXC10)
    is_retry = (hard.producer_epoch == epoch + 1 and has_bumped) or has_rotated
    if hard.producer_id != producer_id and not has_rotated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not (is_current if hard.state in (_S.ONGOING, _S.EMPTY) else is_retry or is_current):
        return ErrorCode.PRODUCER_FENCED
    if is_retry or hard.state in ENDING:
        return _repeated(hard, event)
    return None if hard.state is _S.ONGOING or not event.is_commit else ErrorCode.INVALID_TXN_STATE


def _repeated(hard: TransactionValue, event: EndTransaction) -> ErrorCode:
    """Return the answer to the end of a transaction that is not ongoing (any more)."""
    if hard.state in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if hard.state is not _COMPLETED[event.is_commit]:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.NONE if hard.producer_epoch <= EPOCHS_END else ErrorCode.PRODUCER_FENCED


def _prepare(machine: TransactionalId, hard: TransactionValue, event: EndTransaction, step: Step) -> ErrorCode:
    next_id = NO_PRODUCER_ID
    if event.client_version >= BUMPING and hard.is_exhausted:
        if event.fresh_id is None:  # the coordinator had looked before the last epoch was given
            return ErrorCode.CONCURRENT_TRANSACTIONS
        next_id = event.fresh_id
    machine.prepare(hard, event.is_commit, event.client_version, step, next_id=next_id)
    return ErrorCode.NONE
