"""InitProducerId with a transactional id: a new epoch, which fences the producers before it.

Laws
    TXC2 A producer gets no epoch for its old one (KIP-360) once the producer that replaced it has its own, and aborts
         no transaction of that one. Before, when its transaction was aborted for another producer that has not asked
         again yet, it gets the next epoch, as in Kafka: the other one then fences it.
    A retry, whose epoch is the one before the current one, gets the current one again.
"""

from __future__ import annotations

from dataclasses import replace

from rota.coordinator.transaction.events import InitProducer, Producer
from rota.coordinator.transaction.state import (
    EPOCHS_END,
    NO_EPOCH,
    NO_TIME,
    ProducerReply,
    Step,
    TransactionalId,
    TransactionValue,
)
from rota.coordinator.transaction.transitions import ENDING, TransactionState
from rota.protocol.errors import ErrorCode


def init_producer(machine: TransactionalId, event: InitProducer, step: Step) -> None:
    """Answer the producer id and its new epoch, or the error. An ongoing transaction is aborted first: retry then."""
    hard = machine.hard
    if hard is None:
        _create(machine, event, step)
    elif event.expected is not None and not _is_producer_id_valid(hard, event.expected):
        step.reply(event.token, ProducerReply(ErrorCode.PRODUCER_FENCED))
    elif hard.state in ENDING:
        step.reply(event.token, ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS))
    elif hard.state is TransactionState.ONGOING and event.expected not in (None, hard.producer):
        step.reply(event.token, ProducerReply(ErrorCode.PRODUCER_FENCED))
    elif hard.state is TransactionState.ONGOING:
        machine.fence(hard, step)
        step.reply(event.token, ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS))
    else:
        _bump(machine, hard, event, step)


def _is_producer_id_valid(hard: TransactionValue, expected: Producer) -> bool:
    """The current producer id; or the one before it with its last epoch, as a retry of the request that replaced it."""
    if expected.producer_id == hard.producer_id:
        return True
    return expected.producer_id == hard.previous_producer_id and expected.epoch >= EPOCHS_END


def _create(machine: TransactionalId, event: InitProducer, step: Step) -> None:
    if event.fresh_id is None:  # it expired after the coordinator had looked
        step.reply(event.token, ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS))
        return
    value = TransactionValue(
        producer_id=event.fresh_id,
        producer_epoch=0,
        timeout_ms=event.timeout_ms,
        state=TransactionState.EMPTY,
        update_ms=step.wall_ms,
        previous_producer_id=event.fresh_id,
    )
    _initialize(machine, value, NO_EPOCH, event, step)


def _bump(machine: TransactionalId, hard: TransactionValue, event: InitProducer, step: Step) -> None:
    epoch, expected = hard.producer_epoch, None if event.expected is None else event.expected.epoch
    if expected not in (None, epoch, machine.last_epoch):
        step.reply(event.token, ProducerReply(ErrorCode.PRODUCER_FENCED))
    elif hard.is_exhausted and (expected is None or expected >= EPOCHS_END):
        _rotate(machine, hard, event, step)
    elif expected == machine.last_epoch and expected is not None and expected != epoch:
        _initialize(machine, _idle(hard, event, step), machine.last_epoch, event, step)
    else:
        value = replace(_idle(hard, event, step), producer_epoch=epoch + 1)
        _initialize(machine, value, NO_EPOCH if expected is None else epoch, event, step)


def _rotate(machine: TransactionalId, hard: TransactionValue, event: InitProducer, step: Step) -> None:
    """The epochs of the producer id are used up: a new id."""
    if event.fresh_id is None:  # the coordinator had looked before the last epoch was given
        step.reply(event.token, ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS))
        return
    last_epoch = NO_EPOCH if event.expected is None else event.expected.epoch
    value = replace(_idle(hard, event, step), producer_id=event.fresh_id, producer_epoch=0)
    _initialize(machine, value, last_epoch, event, step)


def _idle(hard: TransactionValue, event: InitProducer, step: Step) -> TransactionValue:
    return replace(
        hard,
        state=TransactionState.EMPTY,
        timeout_ms=event.timeout_ms,
        start_ms=NO_TIME,
        update_ms=step.wall_ms,
        previous_producer_id=hard.producer_id,
    )


def _initialize(
    machine: TransactionalId, value: TransactionValue, last_epoch: int, event: InitProducer, step: Step
) -> None:
    machine.last_epoch = last_epoch
    machine.write(value, step)
    step.reply(event.token, ProducerReply(ErrorCode.NONE, value.producer_id, value.producer_epoch))
