"""Chooses the partition of a record, and has the queues of a topic's partitions. Pure.

Laws
    The partition is the one that the caller gave, else that of the custom partitioner, else that of the key's hash over
    all partitions, else that of the last record without a key.
"""

from __future__ import annotations

from collections.abc import Container

from rota.client.errors import IllegalUse
from rota.client.network.metadata import TopicInfo
from rota.client.producer.accumulator import Accumulator
from rota.client.producer.batch import Batch, Queue
from rota.client.producer.partitioner import Partitioner, partition_of
from rota.client.producer.sticky import Draw, Sticky
from rota.client.types import TopicPartition
from rota.protocol.records.fast import RecordBuffer


class Route:
    """`choose` returns the queue for a record, `queue` the sticky one; `next_queue` changes it after a full batch."""

    __slots__ = (
        "_accumulator",
        "_id",
        "_own",
        "_sticky",
        "_uses_keys",
        "batch",
        "is_custom",
        "keyed_queues",
        "numbers",
        "queue",
        "queues",
        "topic",
        "used_ms",
    )

    def __init__(
        self, topic: str, accumulator: Accumulator, own: Partitioner | None, uses_keys: bool, draw: Draw
    ) -> None:
        self.topic = topic
        self.numbers: tuple[int, ...] = ()
        self.queues: list[Queue] = []
        self.keyed_queues: list[Queue] = []  # `queues` if keys choose among them, else empty
        self.queue: Queue = Queue(TopicPartition(topic, -1))
        self.batch: Batch | None = None  # the last one that was begun without a key
        self._accumulator, self._own, self._uses_keys = accumulator, own, uses_keys
        self.is_custom = own is not None  # the application's own partitioner chooses the partitions
        self._sticky = Sticky(accumulator.limits.batch_bytes, draw)
        self._id = b""
        self.used_ms = 0.0  # the loop's time of the last lookup or the last new batch

    def update(self, info: TopicInfo, brokers: Container[int]) -> None:
        """Update the partitions and their leaders. `brokers`: the nodes with a known address."""
        if info.partitions:
            self.numbers = tuple(sorted(info.partitions))
        self.queues = [self._accumulator.queue(TopicPartition(self.topic, number)) for number in self.numbers]
        self.keyed_queues = self.queues if self._uses_keys and self._own is None else []
        is_recreated = info.id != self._id
        self._id = info.id
        led = []
        for queue in self.queues:
            if is_recreated:  # another topic of that name
                queue.leader_epoch, queue.partition_sequences.known = -1, False
            partition = info.partitions.get(queue.partition.partition)
            leader = partition.leader if partition is not None and partition.leader in brokers else None
            queue.lead(leader, partition.leader_epoch if partition is not None else -1)
            if queue.leader is not None:
                led.append(queue.partition.partition)
        self._sticky.update(self.numbers, led)
        self._select_queue()

    @property
    def has_batches(self) -> bool:
        """Whether a record of the topic is queued or in flight."""
        return any(queue.batches or queue.on_wire for queue in self.queues)

    def choose(self, key: bytes | None, value: bytes | None, partition: int | None) -> Queue:
        """Return the queue for a record. Raises IllegalUse if a custom partitioner returns an unknown partition."""
        if partition is not None:
            return self.queues[partition]
        if self._own is not None:
            chosen = self._own(self.topic, key, value, self.numbers)
            if not isinstance(chosen, int) or not 0 <= chosen < len(self.queues):
                raise IllegalUse(
                    f"the partitioner gave {chosen!r} for topic {self.topic}, which has the partitions 0 to "
                    f"{len(self.queues) - 1}"
                )
            return self.queues[chosen]
        if key is None or not self._uses_keys:
            return self.queue
        return self.queues[partition_of(key, len(self.queues))]

    def open_records(self, *, is_keyed: bool) -> list[RecordBuffer | None]:
        """Return the records of the open batches: of each partition, or of the one for records without a key alone.

        Empty when a custom partitioner chooses the partition of each record.
        """
        if self._own is not None:
            return []
        queues = self.queues if is_keyed and self._uses_keys else [self.queue]
        return [queue.open.records if queue.open is not None else None for queue in queues]

    def is_sticky(self, key: bytes | None) -> bool:
        """Return whether a record with that key goes to the sticky partition."""
        return self._own is None and (key is None or not self._uses_keys)

    def next_queue(self, now_ms: float) -> Queue:
        """Return the queue for the next batch, after the batch of the sticky queue is full."""
        if self.batch is not None:
            before = self.queue
            self._sticky.filled(self.batch.charged_bytes)
            self.batch = None
            self._select_queue()
            if self.queue is not before:
                self._accumulator.close(before, now_ms)
        return self.queue

    def _select_queue(self) -> None:
        if self.queues:
            self.queue = self.queues[self._sticky.partition]
