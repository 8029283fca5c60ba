"""The transaction coordinator: transactional ids, hosted by the runtime on the partitions of `__transaction_state`.

Laws
    TXC3  Markers are sent when the decision is committed, by the leader of the shard alone, with its leader epoch.
    TXC5  Decisions that a shard loads are completed: their markers are sent again when the shard serves requests.
    TXC11 What is described or listed is committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

import structlog

from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.runtime.contract import Hosting, Note, RecordType
from rota.coordinator.runtime.coordinator import COMMIT_TIMEOUT_MS, CoordinatorRuntime, HostPartition, TimerService
from rota.coordinator.runtime.routing import shard_of
from rota.coordinator.runtime.shard import Shard, ShardState
from rota.coordinator.scheduling.delayed_reply import DelayedReply, gather
from rota.coordinator.transaction import records
from rota.coordinator.transaction.events import (
    AddPartitions,
    EndTransaction,
    ExpireIds,
    InitProducer,
    MarkersWritten,
    Producer,
    Resume,
    TopicPartition,
    VerifyPartitions,
)
from rota.coordinator.transaction.machine import Transaction
from rota.coordinator.transaction.state import (
    BUMPING,
    Markers,
    PartitionErrors,
    ProducerReply,
    TransactionRecord,
    TransactionValue,
)
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

T = TypeVar("T")
Reply: TypeAlias = T | DelayedReply[T]
TransactionShard = Shard[Transaction]
log = structlog.get_logger("rota.coordinator")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerJob:
    """The markers of one transaction. `written` takes partitions that are done, each at least once.

    `is_current` is False when the shard was abandoned: the job ends then, and another coordinator sends the markers.
    """

    markers: Markers
    coordinator_epoch: int
    is_current: Callable[[], bool]
    written: Callable[[Iterable[TopicPartition]], None]


class MarkerSender(Protocol):
    """Writes markers to the leaders of partitions, until each has them or the job ends."""

    def submit(self, job: MarkerJob) -> None:
        """Begin a job with at least one partition."""


class RecordCodec:
    """The bytes of `__transaction_state`."""

    encode = staticmethod(records.encode)
    decode = staticmethod(records.decode)


class TransactionCoordinator(CoordinatorRuntime[Transaction]):
    """All transactional ids of this broker."""

    def __init__(
        self,
        *,
        shards: int,
        partition: Callable[[int], HostPartition],
        timers: TimerService,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tick_queue: Callable[[Callable[[], None]], object],
        ensure_topic: Callable[[], Awaitable[bool]],
        leader: Callable[[int], int | None],
        take_producer_id: Callable[[], Awaitable[int]],
        sender: MarkerSender,
        commit_timeout_ms: int = COMMIT_TIMEOUT_MS,
    ) -> None:
        """`ensure_topic` creates the topic unless it exists and returns False when that fails.

        `leader` returns the broker that leads a partition of it; None while no broker does. `take_producer_id` returns
        a new producer id and raises StoreFailed.
        """
        self._ensure_topic, self._leader = ensure_topic, leader
        self._take_producer_id, self._sender = take_producer_id, sender
        super().__init__(
            Hosting("transaction", RecordCodec(), {TransactionRecord: RecordType(_id_of, Transaction)}),
            shards=shards,
            partition=partition,
            timers=timers,
            now_ms=now_ms,
            wall_ms=wall_ms,
            tick_queue=tick_queue,
            emit_event=_log_note,
            on_ready=self._resume,
            send=self._send,
            commit_timeout_ms=commit_timeout_ms,
        )

    # ---- where an id lives

    async def ensure_topic(self) -> bool:
        """Create the topic unless it exists, as the first FindCoordinator does; False when that fails."""
        return self.shards[0].state is not ShardState.DOWN or await self._ensure_topic()

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that has the records of this id."""
        return shard_of(transactional_id, len(self.shards))

    def leader_of(self, transactional_id: str) -> int | None:
        """Return the broker that coordinates this id; None while no broker does."""
        return self._leader(self.partition_of(transactional_id))

    # ---- requests

    def init_producer(self, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Reply[ProducerReply]:
        """Return the producer id and a new epoch. `expected` is what the producer had."""

        def submit(fresh_id: int | None) -> Reply[ProducerReply]:
            def event(shard: TransactionShard) -> InitProducer:
                return InitProducer(token=shard.token(), timeout_ms=timeout_ms, expected=expected, fresh_id=fresh_id)

            return self._submit(transactional_id, event, ProducerReply)

        return self._with_producer_id(transactional_id, submit)

    def end_transaction(
        self, transactional_id: str, producer: Producer, *, is_commit: bool, client_version: int
    ) -> Reply[ProducerReply]:
        """Commit or abort; with client version 2 the reply has the producer's next epoch."""

        def submit(fresh_id: int | None) -> Reply[ProducerReply]:
            def event(shard: TransactionShard) -> EndTransaction:
                return EndTransaction(
                    token=shard.token(),
                    producer=producer,
                    is_commit=is_commit,
                    client_version=client_version,
                    fresh_id=fresh_id,
                )

            return self._submit(transactional_id, event, ProducerReply)

        shard = self.ready(transactional_id)
        is_unknown = isinstance(shard, ErrorCode) or transactional_id not in shard.machines
        if client_version < BUMPING or is_unknown:
            return submit(None)
        return self._with_producer_id(transactional_id, submit)

    def add_partitions(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition], client_version: int
    ) -> Reply[PartitionErrors]:
        """Add partitions to the transaction; the first one begins it."""

        def event(shard: TransactionShard) -> AddPartitions:
            return AddPartitions(
                token=shard.token(), producer=producer, partitions=tuple(partitions), client_version=client_version
            )

        return self._submit(transactional_id, event, PartitionErrors)

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition]
    ) -> Reply[PartitionErrors]:
        """Return TRANSACTION_ABORTABLE for each partition that is not in the transaction."""

        def event(shard: TransactionShard) -> VerifyPartitions:
            return VerifyPartitions(token=shard.token(), producer=producer, partitions=tuple(partitions))

        return self._submit(transactional_id, event, PartitionErrors)

    def describe(self, transactional_id: str) -> Reply[TransactionValue | ErrorCode]:
        """Return the state of an id, or why there is none. Delayed while records of its shard are being written."""
        shard = self.ready(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard
        machine = shard.machines.get(transactional_id)
        value = None if machine is None else machine.describe()
        found: TransactionValue | ErrorCode = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if value is None else value
        return shard.when_committed(found, lambda code: code)

    def states(self) -> Iterator[tuple[str, TransactionValue]]:
        """Iterate over the transactional ids of this broker and their states, which may not be committed yet."""
        return states_of(self.machines())

    def when_states_committed(self, body: T, refusal: Callable[[ErrorCode], T]) -> Reply[T]:
        """Return `body`, which shows machines, when what it shows is committed; `refusal` of the error where a shard's
        records are not written."""
        ready = [shard for shard in self.shards if shard.state is ShardState.READY]
        errors = [shard.when_committed(ErrorCode.NONE, lambda code: code) for shard in ready]
        return gather(errors, lambda codes: next((refusal(code) for code in codes if code), body))

    def expire_ids(self, retention_ms: int) -> None:
        """Remove ids without a transaction that were not used for `retention_ms`, in slices."""
        self.broadcast(ExpireIds(retention_ms), lambda machine: 1)

    def _with_producer_id(
        self, transactional_id: str, submit: Callable[[int | None], Reply[ProducerReply]]
    ) -> Reply[ProducerReply]:
        """Call `submit` with a new producer id if the id needs one, else with None."""
        shard = self.ready(transactional_id)
        if isinstance(shard, ErrorCode):
            return ProducerReply(shard)
        machine = shard.machines.get(transactional_id)
        if machine is not None and not machine.is_producer_id_needed:
            return submit(None)
        reply: DelayedReply[ProducerReply] = DelayedReply()

        def drawn(fresh_id: int | ErrorCode) -> None:
            body = ProducerReply(fresh_id) if isinstance(fresh_id, ErrorCode) else submit(fresh_id)
            if isinstance(body, DelayedReply):
                body.then(reply.answer)
            else:
                reply.answer(body)

        eager_tasks.start(self._draw()).then(drawn)
        return reply

    async def _draw(self) -> int | ErrorCode:
        try:
            return await self._take_producer_id()
        except StoreFailed as failure:
            log.error("No producer id", cause=str(failure))
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # as Kafka: clients retry

    def _submit(
        self, transactional_id: str, event: Callable[[TransactionShard], Any], refusal: Callable[[ErrorCode], T]
    ) -> Reply[T]:
        shard = self.ready(transactional_id)
        if isinstance(shard, ErrorCode):
            return refusal(shard)
        machine = shard.machines.get(transactional_id) or Transaction(transactional_id)
        return shard.submit(machine, event(shard), refusal)

    # ---- markers

    def _resume(self, index: int) -> None:
        """TXC5. Send the markers of all decisions that this shard has loaded."""
        shard = self.shards[index]
        for machine in [machine for machine in shard.machines.values() if machine.is_ending]:
            if shard.machines.get(machine.machine_id) is machine:
                shard.step(machine, Resume())

    def _send(self, shard: TransactionShard, message: Any) -> None:
        markers: Markers = message
        term = shard.term
        written = partial(self._written, shard, term, markers)
        if not markers.partitions:
            written(())
            return
        self._sender.submit(
            MarkerJob(
                markers=markers,
                coordinator_epoch=shard.leader_epoch,
                is_current=lambda: shard.term == term,
                written=written,
            )
        )

    def _written(
        self, shard: TransactionShard, term: int, markers: Markers, partitions: Iterable[TopicPartition]
    ) -> None:
        machine = shard.machines.get(markers.transactional_id)
        if machine is not None and shard.term == term and shard.state is ShardState.READY:
            shard.step(machine, MarkersWritten(markers.producer, partitions))


def states_of(machines: Iterable[Transaction]) -> Iterator[tuple[str, TransactionValue]]:
    """Iterate over the transactional ids of these machines and their states."""
    for machine in machines:
        if machine.hard is not None:
            yield machine.transactional_id, machine.hard


def _id_of(record: Any) -> str:
    transactional_id: str = record.transactional_id
    return transactional_id


def _log_note(transactional_id: str, note: Note) -> None:
    log.info(note.event, **note.fields)
