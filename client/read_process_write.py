"""Read records, process them, write the results: each poll is one transaction, with the offsets that were read.

Laws
    The results of a poll and its offsets are committed together or not at all: each record counts once in the results.
    After an aborted transaction its records are read and processed again, unless the group has moved their partitions.
    An abort that does not succeed in time is repeated before the next poll, for as long as the loop runs.
    Results whose records are not the consumer's any more are aborted: it was closed, or unsubscribed, meanwhile.
    A loop that is begun again with the same consumer repeats no records whose commit succeeded after the first one
    ended.
    A fatal error of the producer, and an exception of `process` other than TransactionAbortable and TimedOut, end the
    loop; the transaction is aborted first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from rota.client.consumer.consumer import Consumer
from rota.client.errors import CommitOutcomeUnknown, ConfigError, IllegalUse, TimedOut, TransactionAbortable
from rota.client.log import logger
from rota.client.producer.producer import Producer
from rota.client.types import ConsumerRecord, OffsetAndMetadata, TopicPartition

POLL_MS: Final = 1_000
RETRY_S_MAX: Final = 1.0  # between two attempts at the same records
_FIRST_RETRY_S: Final = 0.05
_log = logger("rota.client.transaction")

Records = Mapping[TopicPartition, Sequence[ConsumerRecord]]
_undecided: Final[WeakKeyDictionary[Consumer, Records]] = WeakKeyDictionary()  # the loop ended during their commit


async def read_process_write(
    consumer: Consumer,
    producer: Producer,
    process: Callable[[Records], Awaitable[object]],
    *,
    max_records: int | None = None,
) -> None:
    """Call `await process(records)` for each poll, in a transaction: what it sends with `producer` is committed with
    the offsets of the records. Runs until the task is cancelled or the consumer is closed.

    The consumer needs a group, `enable_auto_commit=False` and `isolation_level="read_committed"`; the producer needs a
    `transactional_id` of its own. `max_records` bounds a transaction; None: max_poll_records. Raises ConfigError, what
    `process` raises, TransactionFailed and ProducerFenced, and what `Consumer.getmany` raises.
    """
    _check(consumer)
    failures = 0
    while consumer.state != "CLOSED":
        records: Records = {}
        if is_ready := await _is_ready(consumer, producer):
            try:
                records = await consumer.getmany(max_records, POLL_MS)
            except IllegalUse:
                if consumer.state == "CLOSED":
                    return
                raise
        if records and await _transact(consumer, producer, process, records):
            failures = 0
        elif records or not is_ready:
            failures += 1
            await asyncio.sleep(min(_FIRST_RETRY_S * 2**failures, RETRY_S_MAX))


async def _is_ready(consumer: Consumer, producer: Producer) -> bool:
    """End what a transaction before has left. Returns whether a transaction can begin. Raises TransactionFailed."""
    try:
        if producer.is_commit_pending:
            await producer.commit_transaction()
        if producer.is_abort_pending:
            await producer.abort_transaction()
        if consumer in _undecided:
            await _seek_to_committed(consumer, _undecided[consumer])
            del _undecided[consumer]
    except (TransactionAbortable, TimedOut, CommitOutcomeUnknown) as why:
        _log.warning("a transaction has not ended yet", reason=str(why))
        return False
    return True


async def _transact(
    consumer: Consumer, producer: Producer, process: Callable[[Records], Awaitable[object]], records: Records
) -> bool:
    """Process the records in one transaction. Returns False if it was aborted and the records are read again."""
    is_ending = False
    try:
        try:
            async with producer.transaction():
                await process(records)
                _check_assigned(consumer, records)
                await producer.send_offsets(consumer.delivered_offsets(), consumer.group)
                is_ending = True
        except CommitOutcomeUnknown:
            await _commit_until_known(producer)
    except (TransactionAbortable, TimedOut) as why:
        _log.warning("a transaction was aborted; its records are processed again", reason=str(why))
        rewind(consumer, records)
        return False
    except BaseException as why:
        # cancelled while its commit had succeeded already, and this task had not run again yet: that is not pending
        if producer.is_commit_pending or (is_ending and isinstance(why, asyncio.CancelledError)):
            _undecided[consumer] = records
        else:
            rewind(consumer, records)
        raise
    return True


def _check_assigned(consumer: Consumer, records: Records) -> None:
    """Raises TransactionAbortable if the offsets of some of the records would not be among `delivered_offsets()`."""
    if revoked := set(records) - consumer.assignment:
        names = ", ".join(map(str, sorted(revoked)))
        raise TransactionAbortable(f"the consumer gave up {names} while their records were processed")


async def _commit_until_known(producer: Producer) -> None:
    """Repeat the commit until its outcome is known. Raises TransactionAbortable if it was not committed."""
    while True:
        try:
            await producer.commit_transaction()
        except CommitOutcomeUnknown as why:
            _log.warning("the outcome of a commit is not known yet", reason=str(why))
        except TransactionAbortable:
            await producer.abort_transaction()
            raise
        else:
            return


async def _seek_to_committed(consumer: Consumer, records: Records) -> None:
    """Move the positions after the records if their transaction was committed, else back to the first of them. Waits
    for the end of the transaction. Raises TimedOut."""
    for partition, at in (await consumer.committed(consumer.assignment & set(records))).items():
        if at is None or at.offset < records[partition][0].offset:
            rewind(consumer, {partition: records[partition]})
        elif partition in consumer.assignment:
            consumer.seek(partition, at)


def rewind(consumer: Consumer, records: Records) -> None:
    """Move the positions back to the first of the records, in the partitions that are still assigned."""
    if consumer.state == "CLOSED":
        return
    for partition in consumer.assignment & set(records):
        first = records[partition][0]
        consumer.seek(partition, OffsetAndMetadata(first.offset, leader_epoch=first.leader_epoch))


def _check(consumer: Consumer) -> None:
    """Raises ConfigError for settings with which records would be lost or count twice."""
    config = consumer.config
    if config.group_id is None:
        raise ConfigError("read_process_write() needs a group: set group_id (group.id)")
    if config.enable_auto_commit:
        raise ConfigError("read_process_write() commits offsets in transactions: set enable_auto_commit=False")
    if config.isolation_level != "read_committed":
        raise ConfigError('read_process_write() must not read aborted records: set isolation_level="read_committed"')
