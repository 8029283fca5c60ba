"""Requests for the transactions of a producer: initialize, add partitions and offsets, commit, abort.

Laws
    One call at a time ends a transaction. A commit or abort that was sent goes on when its caller is cancelled, and the
    next call waits for it: the same call again then succeeds if that one has.
    EndTxn is sent when every batch of the transaction has its outcome and no request with one is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from rota.client.config import ProducerConfig
from rota.client.errors import (
    BrokerError,
    CommitOutcomeUnknown,
    KafkaError,
    TimedOut,
    TransactionAbortable,
    TransactionAborted,
    TransactionError,
    TransactionFailed,
)
from rota.client.log import logger
from rota.client.network.attempts import RETRIED
from rota.client.network.cluster import Cluster
from rota.client.network.error_actions import error_action
from rota.client.network.targets import Coordinator, Target, TransactionCoordinator
from rota.client.producer.accumulator import Accumulator
from rota.client.producer.batch import Batch
from rota.client.producer.delivery import ended, failure
from rota.client.producer.prepared import END_VERSION_MAX, PreparedTransaction
from rota.client.producer.requests import Offsets, added_topics, offset_topics
from rota.client.producer.transaction import (
    BROKERS_ADD,
    FEATURE,
    TransactionMachine,
    TransactionState,
    is_new_identity_needed,
    response_error,
)
from rota.client.types import GroupMetadata, TopicPartition
from rota.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from rota.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from rota.protocol.messages.end_txn import EndTxnRequest
from rota.protocol.messages.init_producer_id import InitProducerIdRequest
from rota.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

ADD_PARTITIONS_VERSION_MAX: Final = 3  # later versions are for brokers
OFFSETS_VERSION_MIN: Final = 3  # with member and generation (KIP-447)
OFFSETS_VERSION_MAX: Final = 4  # v5 adds the offsets partition by itself (version 2)
ABORT_MS: Final = 5_000  # of the transaction that a producer without a timeout is closed in
_SENDING: Final = (TransactionState.OPEN, TransactionState.COMMITTING)
_log = logger("rota.client.transaction")


class Transactions:
    """`abort_batches(why)` fails the batches that are not on the wire; `flush(timeout_ms)` waits until all are
    delivered or have failed; `pump()` sends batches."""

    def __init__(
        self,
        config: ProducerConfig,
        cluster: Cluster,
        accumulator: Accumulator,
        *,
        abort_batches: Callable[[KafkaError], None],
        flush: Callable[[int | None], Awaitable[None]],
        pump: Callable[[], None],
    ) -> None:
        assert accumulator.transaction is not None
        self.machine: TransactionMachine = accumulator.transaction
        self._config, self._cluster, self._accumulator = config, cluster, accumulator
        self._abort_batches, self._flush, self._pump = abort_batches, flush, pump
        self._id = self.machine.transactional_id
        self._adding: asyncio.Future[Any] | None = None
        self._sending_offsets: set[asyncio.Future[None]] = set()  # the calls that are under way
        self._ending: asyncio.Future[Any] | None = None

    # ---- identity

    async def initialize(self) -> None:
        """Get the producer id and epoch; earlier producers of the transactional id are fenced, and their open
        transaction is aborted. Raises TimedOut, TransactionError."""
        await self._initialize(self._config.max_block_ms)

    async def _initialize(self, timeout_ms: int) -> None:
        number, epoch = self.machine.producer
        request = InitProducerIdRequest(
            transactional_id=self._id,
            transaction_timeout_ms=self._config.transaction_timeout_ms,
            producer_id=number,
            producer_epoch=epoch,
        )
        answer = await self._send_request(request, "getting a producer id", timeout_ms)
        version = BROKERS_ADD if self._cluster.finalized_feature(FEATURE) >= BROKERS_ADD else 1
        self._identify((answer.producer_id, answer.producer_epoch), version)
        _log.info("producer id", transactional_id=self._id, id=answer.producer_id, epoch=answer.producer_epoch)

    def _identify(self, producer: tuple[int, int], version: int) -> None:
        self.machine.identified(producer, version)
        self._accumulator.identify(*producer)

    # ---- the calls of a transaction

    async def begin(self) -> None:
        """Open a transaction, after a commit or abort that is under way. Raises IllegalUse, TransactionFailed."""
        await self._wait_for_ending()
        self.machine.begin()

    async def commit(self, timeout_ms: int | None) -> None:
        """Deliver all and commit. Raises TransactionError, IllegalUse, CommitOutcomeUnknown; TimedOut: undelivered."""
        timeout_ms = self._config.max_block_ms if timeout_ms is None else timeout_ms
        if await self._has_ended(TransactionState.COMMIT_SENT):
            return
        await self._deliver(timeout_ms)
        self.machine.commit_sent()
        await self._end(committed=True, timeout_ms=timeout_ms)

    async def prepare(self, timeout_ms: int | None) -> PreparedTransaction | None:
        """Deliver all and leave the transaction open for another process; None: it has nothing to end. Raises
        TransactionError, IllegalUse, TimedOut."""
        await self._wait_for_ending()
        await self._deliver(self._config.max_block_ms if timeout_ms is None else timeout_ms)
        return self.machine.prepared()

    async def _deliver(self, timeout_ms: int) -> None:
        self.machine.committing()
        try:
            if self.machine.state is TransactionState.COMMITTING:
                await self._flush(timeout_ms)
                await self._wait_for_offsets(timeout_ms)
        finally:
            self.machine.reopened()

    async def abort(self, timeout_ms: int | None) -> None:
        """Drop the records that were not delivered and abort. Raises TransactionFailed, TimedOut, IllegalUse."""
        if await self._has_ended(TransactionState.ABORTING):
            return
        self.machine.aborting()
        self._abort_batches(TransactionAborted(f"the transaction of {self._id} was aborted"))
        await self._end(committed=False, timeout_ms=timeout_ms)

    async def close(self, timeout_ms: int | None) -> None:
        """End the open transaction before the producer is closed: abort it, or wait for the commit that was sent. None:
        for the time of that commit, and ABORT_MS for the abort."""
        begun = asyncio.get_running_loop().time()
        await self._wait_for_ending(None if timeout_ms is None else timeout_ms / 1000)
        if not self.machine.is_in_transaction:
            return
        if self._ending is not None or self.machine.state is TransactionState.COMMIT_SENT:
            _log.warning("the producer is closed before the end of its transaction is known", transactional_id=self._id)
            return
        _log.info("the producer is closed in a transaction, which is aborted", transactional_id=self._id)
        passed_ms = int((asyncio.get_running_loop().time() - begun) * 1000)
        try:
            await self.abort(ABORT_MS if timeout_ms is None else max(0, timeout_ms - passed_ms))
        except KafkaError as why:
            _log.warning("a transaction was not aborted", transactional_id=self._id, reason=str(why))

    async def _end(self, *, committed: bool, timeout_ms: int | None) -> None:
        timeout_ms = self._config.max_block_ms if timeout_ms is None else timeout_ms
        self._ending = self._cluster.background(self._send_end(committed, timeout_ms), "end of a transaction")
        failure = await self._wait_for_ending()
        if committed and isinstance(failure, TimedOut):
            raise CommitOutcomeUnknown(f"{failure}; await commit_transaction() again") from failure
        if failure is not None:
            raise failure

    async def _has_ended(self, state: TransactionState) -> bool:
        """Wait for the commit or abort that is under way. Returns whether the transaction was in that state, and the
        call that brought it there has succeeded: it was cancelled, and this one is made for its outcome."""
        machine, was, number = self.machine, self.machine.state, self.machine.number
        await self._wait_for_ending()
        machine.check_number(None if was is state else number)
        return was is state and (machine.state is TransactionState.READY or machine.number != number)

    async def _wait_for_ending(self, seconds: float | None = None) -> KafkaError | None:
        """Wait for the commit or abort that is under way, so long at most; return its failure."""
        task = self._ending
        if task is None or not (await asyncio.wait({task}, timeout=seconds))[0]:
            return None
        if self._ending is task:
            self._ending = None
        if task.cancelled():
            return TimedOut("the request that ends the transaction was cancelled")
        failure: KafkaError | None = task.result()
        return failure

    async def _send_end(self, committed: bool, timeout_ms: int) -> KafkaError | None:
        """Return the failure; no caller may be left to receive it."""
        what = "committing" if committed else "aborting"
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._wait_for_requests()
                await self._send_end_txn(committed, timeout_ms)
        except KafkaError as why:
            return why
        except TimeoutError:
            return TimedOut(f"{what} the transaction of {self._id} did not succeed within {timeout_ms} ms")
        _log.debug("transaction ended", transactional_id=self._id, committed=committed)
        return None

    async def _wait_for_requests(self) -> None:
        """Wait for the responses to the requests of the transaction."""
        if self._adding is not None:
            await asyncio.wait({self._adding})
        await self._wait_for_offsets(None)
        for batch in list(self._accumulator.incomplete):
            await ended(batch)

    async def _wait_for_offsets(self, timeout_ms: int | None) -> None:
        """Wait for the calls of `send_offsets` that are under way; no other begins meanwhile. Raises TimedOut."""
        if not self._sending_offsets:
            return
        _, late = await asyncio.wait(self._sending_offsets, timeout=None if timeout_ms is None else timeout_ms / 1000)
        if late:
            raise TimedOut(f"the offsets of the transaction of {self._id} were not sent within {timeout_ms} ms")

    async def _send_end_txn(self, committed: bool, timeout_ms: int) -> None:
        machine = self.machine
        producer = None
        if machine.is_begun_at_coordinator:
            try:
                producer = await self._request_end_txn(committed, timeout_ms)
            except TransactionAbortable as why:
                if committed:
                    raise
                if not is_new_identity_needed(why):  # an abort that is refused cannot be aborted
                    self._failed(TransactionFailed(str(why)))
                    raise TransactionFailed(str(why)) from why
                machine.needs_new_epoch = True
        queues = self._accumulator.queues.values()
        needs_epoch = machine.needs_new_epoch or any(queue.partition_sequences.is_broken for queue in queues)
        if needs_epoch and (producer is None or producer[0] < 0):
            await self._initialize(timeout_ms)
        elif producer is not None and producer[0] >= 0:
            self._identify(producer, machine.version)
        self._accumulator.aborting = None
        machine.ended(None)

    async def _request_end_txn(self, committed: bool, timeout_ms: int) -> tuple[int, int]:
        number, epoch = self.machine.producer
        request = EndTxnRequest(
            transactional_id=self._id, producer_id=number, producer_epoch=epoch, committed=committed
        )
        what = "committing a transaction" if committed else "aborting a transaction"
        limit = None if self.machine.version >= BROKERS_ADD else END_VERSION_MAX
        answer = await self._send_request(request, what, timeout_ms, version_max=limit)
        return answer.producer_id, answer.producer_epoch

    # ---- failures

    def batch_failed(self, batch: Batch) -> None:
        """A batch has failed: so has the transaction."""
        batch.reported.update(range(batch.count))  # by the error of the transaction
        self._failed(failure(batch, 0))

    def _failed(self, cause: KafkaError) -> None:
        if self.machine.fail(cause):
            _log.warning("a transaction has failed", transactional_id=self._id, reason=str(self.machine.error))
            self._abort_batches(TransactionAborted(f"the transaction of {self._id} has failed: {cause}"))

    # ---- partitions

    def add_partitions(self) -> None:
        """Add the pending partitions at the coordinator, in the background (version 1)."""
        pending = tuple(self.machine.pending)
        if pending and self._adding is None and self.machine.state in _SENDING:
            self.machine.coordinator_request_sent()
            self._adding = self._cluster.background(self._add_partitions(pending), "partitions of a transaction")
            self._adding.add_done_callback(self._partitions_done)

    def _partitions_done(self, task: asyncio.Future[Any]) -> None:
        self._adding = None
        if not task.cancelled():  # else the program ends: another task would be cancelled, too
            self._pump()

    async def _add_partitions(self, partitions: tuple[TopicPartition, ...]) -> None:
        number, epoch = self.machine.producer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=number,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=added_topics(partitions),
        )
        try:
            await self._send_request(
                request,
                "adding partitions to a transaction",
                self._config.max_block_ms,
                codes=lambda answer: (
                    result.partition_error_code
                    for topic in answer.results_by_topic_v3_and_below
                    for result in topic.results_by_partition
                ),
                version_max=ADD_PARTITIONS_VERSION_MAX,
            )
        except KafkaError as why:
            self._failed(why)
        else:
            self.machine.partitions_added(partitions)

    # ---- offsets

    async def send_offsets(self, group: GroupMetadata, offsets: Offsets, timeout_ms: int | None) -> None:
        """Commit offsets of the group with the transaction (KIP-447). Raises TransactionError, TimedOut, IllegalUse."""
        self.machine.check_send()
        timeout_ms = self._config.max_block_ms if timeout_ms is None else timeout_ms
        self.machine.coordinator_request_sent()
        call: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sending_offsets.add(call)
        try:
            if self.machine.version < BROKERS_ADD:
                await self._add_offsets(group.group_id, timeout_ms)
            await self._commit_offsets(group, offsets, timeout_ms)
        except KafkaError as why:
            self._failed(why)
            self.machine.raise_error()
            raise
        except asyncio.CancelledError:
            self._failed(TransactionAbortable(f"send_offsets() was cancelled in the transaction of {self._id}"))
            raise
        finally:
            self._sending_offsets.discard(call)
            call.set_result(None)

    async def _add_offsets(self, group: str, timeout_ms: int) -> None:
        number, epoch = self.machine.producer
        request = AddOffsetsToTxnRequest(
            transactional_id=self._id, producer_id=number, producer_epoch=epoch, group_id=group
        )
        await self._send_request(request, f"adding offsets of group {group} to a transaction", timeout_ms)

    async def _commit_offsets(self, group: GroupMetadata, offsets: Offsets, timeout_ms: int) -> None:
        number, epoch = self.machine.producer
        brokers_add = self.machine.version >= BROKERS_ADD
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group.group_id,
            producer_id=number,
            producer_epoch=epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=offset_topics(offsets),
        )
        await self._send_request(
            request,
            f"committing offsets of group {group.group_id} in a transaction",
            timeout_ms,
            target=Coordinator(group.group_id),
            codes=lambda answer: (part.error_code for topic in answer.topics for part in topic.partitions),
            version_min=OFFSETS_VERSION_MAX + 1 if brokers_add else OFFSETS_VERSION_MIN,
            version_max=None if brokers_add else OFFSETS_VERSION_MAX,
        )

    # ---- one request

    async def _send_request(
        self,
        request: Any,
        what: str,
        timeout_ms: int,
        *,
        target: Target | None = None,
        codes: Callable[[Any], Iterable[int]] = lambda answer: (answer.error_code,),
        version_min: int = 0,
        version_max: int | None = None,
    ) -> Any:
        """Return the response without errors. Raises TransactionError for a code that ends the attempts, also one of
        the look-up of the coordinator, TimedOut."""
        try:
            answer = await self._cluster.send_request_until(
                target or TransactionCoordinator(self._id),
                request,
                codes,
                what=what,
                timeout_ms=timeout_ms,
                version_min=version_min,
                version_max=version_max,
            )
        except BrokerError as refusal:
            raise self._refused(request, refusal) from refusal
        refused = [code for code in codes(answer) if code]
        final = [code for code in refused if error_action(request.KEY, code) not in RETRIED]
        if final:
            raise self._refused(request, BrokerError(final[0], f"{what} ({self._id})"))
        if refused:
            last = BrokerError(refused[0], what)
            raise TimedOut(f"{what} ({self._id}) did not succeed within {timeout_ms} ms: {last}") from last
        return answer

    def _refused(self, request: Any, refusal: BrokerError) -> TransactionError:
        """The transaction, or the producer, has failed: return why."""
        error = response_error(self._id, request.KEY, refusal)
        self._failed(error)
        return error
