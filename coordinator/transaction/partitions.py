"""AddPartitionsToTxn and AddOffsetsToTxn: the first partition begins a transaction; and verification (KIP-890).

Law
    TXC4  A partition is in the transaction, durably, before a record of the transaction is appended to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rota.coordinator.transaction.events import AddPartitions, Producer, TopicPartition, VerifyPartitions
from rota.coordinator.transaction.state import EPOCHS_END, PartitionErrors, Step, TransactionalId, TransactionValue
from rota.coordinator.transaction.transitions import ENDING, TransactionState
from rota.protocol.errors import ErrorCode


def add_partitions(machine: TransactionalId, event: AddPartitions, step: Step) -> None:
    """Add the partitions; partitions that are in the transaction already are no change."""
    hard, error = machine.hard, _check(machine.hard, event.producer)
    if hard is None or error is not ErrorCode.NONE:
        step.reply(event.token, PartitionErrors(error))
        return
    is_begun = hard.state is TransactionState.ONGOING
    added = tuple(dict.fromkeys(event.partitions).keys() - set(hard.partitions))
    if not is_begun or added:
        _write(machine, hard, event, is_begun, step)
    step.reply(event.token, PartitionErrors(ErrorCode.NONE))


def _write(machine: TransactionalId, hard: TransactionValue, event: AddPartitions, is_begun: bool, step: Step) -> None:
    machine.write(
        replace(
            hard,
            state=TransactionState.ONGOING,
            partitions=by_topic(hard.partitions + event.partitions),
            start_ms=hard.start_ms if is_begun else step.wall_ms,
            update_ms=step.wall_ms,
            previous_producer_id=hard.producer_id,
            client_version=event.client_version,
        ),
        step,
    )
    if not is_begun:
        machine.begin_timeout(hard.timeout_ms, step)


def by_topic(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Return the partitions in the order of a record: those of one topic together, each once."""
    topics: dict[str, dict[TopicPartition, None]] = {}
    for partition in partitions:
        topics.setdefault(partition[0], {})[partition] = None
    return tuple(partition for found in topics.values() for partition in found)


def verify_partitions(machine: TransactionalId, event: VerifyPartitions, step: Step) -> None:
    """Answer TRANSACTION_ABORTABLE for each partition that is not in the transaction."""
    hard, error = machine.hard, _check(machine.hard, event.producer)
    if hard is None or error is not ErrorCode.NONE:
        step.reply(event.token, PartitionErrors(error))
        return
    known = set(hard.partitions)
    missing = (partition for partition in event.partitions if partition not in known)
    step.reply(event.token, PartitionErrors(error, dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)))


def _check(hard: TransactionValue | None, producer: Producer) -> ErrorCode:
    if hard is None or hard.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if hard.producer_epoch != producer.epoch or producer.epoch > EPOCHS_END:  # TXC2: no client has that epoch
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if hard.state in ENDING else ErrorCode.NONE
