"""Asks the coordinator of a transaction whether partitions are in it, or adds them (KIP-890).

The leader of a partition asks before it appends the first batch of a transaction: a producer of transaction version 2
does not add partitions itself (Produce v12, TxnOffsetCommit v5), and a late batch of an older one must not begin a
transaction that no coordinator knows of.

Laws
    TXC4  A partition is in the transaction, durably, before a record of the transaction is appended to it.
    G4  Every verification is answered, within the time of a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple

import structlog

from rota.coordinator.metadata import eager_tasks
from rota.coordinator.runtime.coordinator import TimerService
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction.events import Producer, TopicPartition
from rota.coordinator.transaction.state import BUMPING, PartitionErrors
from rota.coordinator.transaction_coordinator import TransactionCoordinator
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from rota.transport.errors import KafkaError

log = structlog.get_logger("rota.coordinator")

Errors = dict[TopicPartition, ErrorCode]
RETRY_MS: Final = 20  # add.partitions.to.txn.retry.backoff.ms
RETRIES_MAX: Final = 5  # within add.partitions.to.txn.retry.backoff.max.ms
_E: Final = ErrorCode


class PartitionVerification(NamedTuple):
    """`adds` adds the partitions that are not in the transaction."""

    transactional_id: str
    producer: Producer
    partitions: tuple[TopicPartition, ...]
    adds: bool

    def refused(self, error: ErrorCode) -> Errors:
        """Return this error for each partition."""
        return dict.fromkeys(self.partitions, error)


class Verification:
    """The questions of this broker. `send_request` sends a request to another broker and raises KafkaError."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        *,
        broker_id: int,
        send_request: Callable[[int, Any], Awaitable[Any]],
        timers: TimerService,
        now_ms: Callable[[], int],
    ) -> None:
        self._coordinator, self._broker_id, self._send_request = coordinator, broker_id, send_request
        self._timers, self._now_ms, self._numbers = timers, now_ms, count()

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        adds: bool,
    ) -> DelayedReply[Errors]:
        """Return the error of each partition that has one. `adds` adds partitions to the transaction.

        While the transaction before is ending, partitions that are to be added wait for a moment.
        """
        verification = PartitionVerification(
            transactional_id, Producer(producer_id, producer_epoch), tuple(partitions), adds
        )
        reply: DelayedReply[Errors] = DelayedReply()
        if transactional_id:
            self._try(verification, RETRIES_MAX if adds else 0, reply.answer)
        else:
            reply.answer(verification.refused(_E.INVALID_REQUEST))
        return reply

    def _try(self, verification: PartitionVerification, retries_left: int, done: Callable[[Errors], None]) -> None:
        def finish(errors: Errors) -> None:
            if retries_left and _E.CONCURRENT_TRANSACTIONS in errors.values():
                again = partial(self._try, verification, retries_left - 1, done)
                self._timers.at(("verification", next(self._numbers)), self._now_ms() + RETRY_MS, again)
            else:
                done(errors)

        leader = self._coordinator.leader_of(verification.transactional_id)
        if leader is None:
            finish(verification.refused(_E.COORDINATOR_NOT_AVAILABLE))
        elif leader == self._broker_id:
            self._verify_locally(verification, finish)
        else:
            eager_tasks.start(self._verify_on_broker(leader, verification)).then(finish)

    def _verify_locally(self, verification: PartitionVerification, done: Callable[[Errors], None]) -> None:
        def finish(body: PartitionErrors) -> None:
            done(body.partitions if body.error is _E.NONE else verification.refused(body.error))

        coordinator, (transactional_id, producer, partitions, adds) = self._coordinator, verification
        reply: PartitionErrors | DelayedReply[PartitionErrors]
        if adds:
            reply = coordinator.add_partitions(transactional_id, producer, partitions, BUMPING)
        else:
            reply = coordinator.verify_partitions(transactional_id, producer, partitions)
        if isinstance(reply, DelayedReply):
            reply.then(finish)
        else:
            finish(reply)

    async def _verify_on_broker(self, leader: int, verification: PartitionVerification) -> Errors:
        try:
            response: AddPartitionsToTxnResponse = await self._send_request(leader, request_of(verification))
        except KafkaError as failure:
            log.info("Transaction was not verified", broker=leader, reason=str(failure))
            return verification.refused(_E.NETWORK_EXCEPTION)
        except Exception as failure:  # G4: whatever it is, the producer gets an answer
            log.error("Transaction was not verified; unexpected exception", broker=leader, exc_info=failure)
            return verification.refused(_E.NETWORK_EXCEPTION)
        if response.error_code:  # the cause is not the producer's: this broker has no CLUSTER_ACTION, for example
            return verification.refused(_E.INVALID_TXN_STATE)
        return {
            (topic.name, each.partition_index): _E.of(each.partition_error_code)
            for result in response.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
            if each.partition_error_code
        }


def request_of(verification: PartitionVerification) -> AddPartitionsToTxnRequest:
    """Return the verification to another broker."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in verification.partitions:
        by_topic.setdefault(topic, []).append(index)
    topics = (AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes)) for name, indexes in by_topic.items())
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=verification.transactional_id,
        producer_id=verification.producer.producer_id,
        producer_epoch=verification.producer.epoch,
        verify_only=not verification.adds,
        topics=tuple(topics),
    )
    return AddPartitionsToTxnRequest(transactions=(transaction,))
