"""Records that are not delivered yet, in batches: appended, drained by node, put back for a retry, completed. Pure.

Laws
    A record is in exactly one batch until that batch has its outcome.
    A partition's records are sent in the order in which they were appended, retries included. With idempotence up to
    five batches of a partition are in flight and their sequences keep the order; without it, one (Java's producer
    allows several, and loses the order when one of them is retried).
    `used_bytes` is the sum of the charges of all records in batches without an outcome.
    A batch lingers for at most `linger_ms`; it has its outcome by `delivery_timeout_ms`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from rota.client.errors import KafkaError
from rota.client.producer.batch import Batch, Failed, Queue, Written
from rota.client.producer.sequences import SequenceErrorAction, Sequences
from rota.client.producer.transaction import TransactionMachine
from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass
from rota.protocol.records.batch import Codec
from rota.protocol.records.fast import Headers
from rota.protocol.records.produced import BufferMemory

NEVER: Final = math.inf
UNLIMITED_BYTES: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in milliseconds, as ProducerConfig has them."""

    batch_bytes: int = 16_384
    linger_ms: float = 5
    request_bytes: int = 1_048_576
    delivery_ms: float = 120_000
    codec: Codec = Codec.NONE
    level: int | None = None


class Ready(NamedTuple):
    """Nodes with batches to send; the time of the next check; topics that have a partition without a leader."""

    nodes: tuple[int, ...]
    next_ms: float
    leaderless: tuple[str, ...]


class Accumulator:
    """`sequences` None: not idempotent. `flushing`: batches are sent without lingering.

    `transaction`: every batch belongs to one, and is refused without. `aborting`: why no batch is sent again.
    `due_ms`: the time at which something may be ready; the sender compares it with its own timer after an append.
    """

    def __init__(
        self,
        limits: Limits,
        sequences: Sequences | None,
        transaction: TransactionMachine | None = None,
        memory: BufferMemory | None = None,
    ) -> None:
        """`memory` None: without a limit, and without `take`, which needs a clock."""
        self.limits, self.sequences, self.transaction = limits, sequences, transaction
        self.memory = BufferMemory(UNLIMITED_BYTES, UNLIMITED_BYTES, lambda: 0.0) if memory is None else memory
        self.aborting: KafkaError | None = None
        self.due_ms: float = NEVER
        self.flushing = False
        self.incomplete: dict[Batch, None] = {}  # oldest first
        self.queues: dict[TopicPartition, Queue] = {}
        self._busy: dict[Queue, None] = {}  # queues with batches to send

    def queue(self, partition: TopicPartition) -> Queue:
        """The partition's queue; creates it at the first call."""
        found = self.queues.get(partition)
        if found is None:
            found = self.queues[partition] = Queue(partition)
        return found

    @property
    def used_bytes(self) -> int:
        """The charges of the records in batches without an outcome."""
        return self.memory.used_bytes

    # ---- append

    def append(
        self,
        queue: Queue,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size_bytes: int,
    ) -> Batch | None:
        """Append to the open batch and return it; None if there is none or the record does not fit. `size_bytes` is the
        record's charge (`record_bytes`)."""
        batch = queue.open
        if batch is None or not batch.append(timestamp, key, value, headers):
            return None
        batch.records.charged_bytes += size_bytes
        self.memory.used_bytes += size_bytes
        return batch

    def begin(
        self,
        queue: Queue,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size_bytes: int,
        now_ms: float,
    ) -> Batch:
        """Close the open batch and begin a new one with this record. Raises IllegalUse or TransactionError when no
        transaction takes it."""
        limits = self.limits
        if self.transaction is not None:
            self.transaction.check_send()
        batch = Batch(queue, limits.batch_bytes, limits.codec, limits.level, now_ms)
        batch.is_transactional = self.transaction is not None
        batch.append(timestamp, key, value, headers)  # raises before anything is changed
        if self.transaction is not None:
            self.transaction.send(queue.partition)
        batch.records.charged_bytes = size_bytes
        self.memory.used_bytes += size_bytes
        self.close(queue, now_ms)
        self.incomplete[batch] = None
        queue.batches.append(batch)
        queue.open = batch
        self._busy[queue] = None
        if size_bytes >= limits.batch_bytes:
            self.close(queue, now_ms)
        self.due_ms = min(self.due_ms, now_ms if self.flushing else now_ms + limits.linger_ms)
        return batch

    def close(self, queue: Queue, now_ms: float) -> None:
        """Close the open batch: it takes no more records and does not linger."""
        if queue.open is not None:
            queue.open = None
            self.due_ms = min(self.due_ms, now_ms)

    # ---- drain

    def ready(self, now_ms: float) -> Ready:
        """What can be drained now, and when to check again."""
        nodes: dict[int, None] = {}
        leaderless: dict[str, None] = {}
        next_ms = NEVER
        for queue in self._busy:
            if queue.leader is None:
                leaderless[queue.partition.topic] = None
                continue
            at = self._sendable_ms(queue)
            if at <= now_ms:
                nodes[queue.leader] = None
            elif at < next_ms:
                next_ms = at
        if self.incomplete:
            next_ms = min(next_ms, next(iter(self.incomplete)).created_ms + self.limits.delivery_ms)
        self.due_ms = next_ms
        return Ready(tuple(nodes), next_ms, tuple(leaderless))

    def drain(self, node: int, now_ms: float) -> list[Batch]:
        """The batches of one request to the node: one of each partition, up to `request_bytes` (a single batch may be
        larger), if one of them is due. Partitions take turns."""
        queues = [queue for queue in self._busy if queue.leader == node]
        if not any(self._sendable_ms(queue) <= now_ms for queue in queues):
            return []
        drained: list[Batch] = []
        size = 0
        for queue in queues:
            head = queue.batches[0]
            if self._is_blocked(queue, head) or self._backs_off(queue, head) > now_ms:
                continue
            size += head.wire_bytes
            if drained and size > self.limits.request_bytes:
                break
            drained.append(self._take(queue))
        return drained

    def _take(self, queue: Queue) -> Batch:
        batch = queue.take()
        if self.sequences is not None and not batch.is_numbered:
            self.sequences.number(queue.partition_sequences, batch)
        batch.seal()
        batch.attempts += 1
        batch.leader_epoch = queue.leader_epoch
        queue.on_wire += 1
        del self._busy[queue]
        if queue.batches:
            self._busy[queue] = None
        return batch

    def _sendable_ms(self, queue: Queue) -> float:
        head = queue.batches[0]
        if self._is_blocked(queue, head):
            return NEVER
        if head.attempts:
            return self._backs_off(queue, head)
        if self.flushing or head is not queue.open:
            return head.not_before_ms
        return head.created_ms + self.limits.linger_ms

    def _is_blocked(self, queue: Queue, head: Batch) -> bool:
        """Return whether the batch must wait for the response to an earlier one, or for its transaction."""
        if self.transaction is not None and not self.transaction.is_sendable(queue.partition):
            return True
        if self.sequences is None:
            return queue.on_wire > 0
        return not self.sequences.is_sendable(queue.partition_sequences, head)

    def _backs_off(self, queue: Queue, head: Batch) -> float:
        """Return the end of the batch's backoff, which is over at once if the leader has changed (KIP-951)."""
        return head.created_ms if queue.leader_epoch > head.leader_epoch >= 0 else head.not_before_ms

    # ---- outcomes

    def request_ended(self, batch: Batch) -> None:
        """The request of the batch has ended; a call of `deliver`, `retry`, `split` or `fail` follows."""
        batch.queue.on_wire -= 1

    def deliver(self, batch: Batch, written: Written) -> None:
        """The broker has the batch. Also called for a batch that has failed meanwhile, because of its sequences."""
        if self.sequences is not None:
            self.sequences.delivered(batch.queue.partition_sequences, batch)
        if batch.outcome is None:
            self._end(batch, written)
        self._settle(batch.queue)

    def fail(self, batch: Batch, failed: Failed) -> None:
        """Fail a batch, which may be queued, in flight or complete."""
        if batch.outcome is None:
            if batch in batch.queue.batches:
                self._withdraw(batch)
            if self.sequences is not None:
                self.sequences.given_up(batch.queue.partition_sequences, batch, maybe_written=failed.maybe_written)
            self._end(batch, failed)
        self._settle(batch.queue)

    def retry(self, batch: Batch, not_before_ms: float) -> None:
        """Queue the batch again; it is sent after `not_before_ms`, or earlier to a new leader."""
        if batch.outcome is None:
            batch.not_before_ms = not_before_ms
            batch.queue.put_back(batch)
            self._busy[batch.queue] = None
        self._settle(batch.queue)

    def split(self, batch: Batch) -> None:
        """Replace a batch that is too large for the broker by smaller ones, which are sent at once.

        The batch has at least two records.
        """
        queue = batch.queue
        if batch.outcome is None:
            parts = batch.split(self.limits.batch_bytes, self.limits.codec, self.limits.level)
            if batch.is_numbered:
                queue.partition_sequences.replace(batch, parts)
            self.incomplete = {
                remaining: None for old in self.incomplete for remaining in (parts if old is batch else (old,))
            }  # of the same age
            for part in reversed(parts):
                queue.put_back(part)
            self._busy[queue] = None
        self._settle(queue)

    def action_after_error(self, batch: Batch, code: int) -> SequenceErrorAction | None:
        """What to do after a sequence error; None for other errors."""
        if self.sequences is None or batch.outcome is not None:
            return None
        return self.sequences.action_after_error(batch.queue.partition_sequences, batch, code)

    def expired(self, now_ms: float) -> list[Batch]:
        """The batches whose delivery timeout is over; the caller fails them."""
        late = []
        for batch in self.incomplete:
            if batch.created_ms + self.limits.delivery_ms > now_ms:
                break
            late.append(batch)
        return late

    def is_on_wire(self, batch: Batch) -> bool:
        """Return whether the batch is in a request without a response."""
        return batch.attempts > 0 and batch.outcome is None and batch not in batch.queue.batches

    def identify(self, producer_id: int, epoch: int) -> None:
        """Set the producer id and epoch."""
        assert self.sequences is not None
        self.sequences.producer = (producer_id, epoch)
        for queue in self.queues.values():
            self._settle(queue)

    def forget(self, queues: Iterable[Queue]) -> None:
        """Remove these queues, which have no batches. With idempotence they are kept for their next sequence."""
        for queue in queues if self.sequences is None else ():
            self.queues.pop(queue.partition, None)

    def _settle(self, queue: Queue) -> None:
        if self.sequences is not None and not queue.on_wire:
            self.sequences.resolve_gaps(queue.partition_sequences)

    def _withdraw(self, batch: Batch) -> None:
        queue = batch.queue
        queue.batches.remove(batch)
        if queue.open is batch:
            queue.open = None
        if not queue.batches:
            self._busy.pop(queue, None)

    def _end(self, batch: Batch, outcome: Written | Failed) -> None:
        del self.incomplete[batch]
        self.memory.used_bytes -= batch.charged_bytes
        batch.end(outcome)
