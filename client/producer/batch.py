"""A batch of records of one partition with its outcome, and the queue of a partition's batches. Pure.

Laws
    A record is encoded when it is appended; a batch is compressed once, when it is sealed. A new sequence only patches
    the header.
    A batch has one outcome, which never changes. A batch that was split has none: its parts have their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, Final

from rota.client.errors import KafkaError
from rota.client.producer.sequences import PartitionSequences, ProducerId
from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass
from rota.protocol.records.batch import BATCH_HEADER_BYTES, SEQUENCE_MAX, Codec, read_producer, with_producer
from rota.protocol.records.fast import Headers
from rota.protocol.records.produced import RECORD_OVERHEAD_BYTES_MAX
from rota.protocol.records.record import BatchBuilder, read_records

HEADER_OVERHEAD_BYTES_MAX: Final = 10

Listener = Callable[[], bool]  # called once, at the outcome; returns whether a caller is about to get it
Callback = tuple[int, Callable[[Any], object], object]  # index of the record, function, its argument


@dataclass(frozen=True, slots=True)
class Written:
    """The broker has the records. `base_offset` -1: unknown. `append_time_ms` -1: the records keep their timestamps."""

    base_offset: int
    append_time_ms: int = -1


@dataclass(frozen=True, slots=True)
class Failed:
    """The records were given up. `records`: the errors of single records, by index (KIP-467)."""

    cause: KafkaError
    maybe_written: bool
    records: dict[int, KafkaError] = field(default_factory=dict)


class Batch(BatchBuilder):
    """One batch, from its first record to its outcome.

    `append` returns False when a record no longer fits. `attempts` counts the sends; `maybe_written`: an
    attempt ended without a response, or with one after which the records may be written or not.
    """

    __slots__ = (
        "attempts",
        "call_soon",
        "callbacks",
        "created_ms",
        "is_transactional",
        "last_error",
        "leader_epoch",
        "listeners",
        "maybe_written",
        "not_before_ms",
        "notified",
        "outcome",
        "parts",
        "producer",
        "queue",
        "raw",
        "raw_bytes",
        "reported",
        "sequence",
        "split_when_ambiguous",
    )

    def __init__(self, queue: Queue, bytes_max: int, codec: Codec, level: int | None, created_ms: float) -> None:
        super().__init__(bytes_max, codec, level)
        self.queue = queue
        self.created_ms = created_ms
        self.attempts = 0
        self.not_before_ms = created_ms
        self.leader_epoch = -1
        self.is_transactional = False
        self.maybe_written = False
        self.split_when_ambiguous = (
            False  # it is a part of a batch that may be written: a broker would not detect it as a duplicate
        )
        self.last_error: KafkaError | None = None
        self.producer: ProducerId = (-1, -1)
        self.sequence = -1
        self.raw = b""
        self.raw_bytes = 0  # before compression, once it is sealed
        self.listeners: list[tuple[int, Listener]] = []
        self.callbacks: list[Callback] = []
        self.call_soon: Callable[..., object] = _call_all  # of the loop that the callbacks run in
        self.outcome: Written | Failed | None = None
        self.parts: tuple[tuple[int, Batch], ...] = ()
        self.reported: set[int] = set()
        self.notified: dict[int, int] = {}  # by index: callers that were woken for a failure and have not run since

    @property
    def charged_bytes(self) -> int:
        """The memory that its records take, as `record_bytes` counts it."""
        return self.records.charged_bytes

    @property
    def is_numbered(self) -> bool:
        """Whether it has a sequence, which it keeps in all attempts."""
        return self.sequence >= 0

    @property
    def end_sequence(self) -> int:
        """The sequence after that of its last record."""
        return (self.sequence + self.count) & SEQUENCE_MAX

    @property
    def is_unreported(self) -> bool:
        """Whether it failed and no caller has got, or is about to get, the failure of at least one record."""
        return isinstance(self.outcome, Failed) and next(self.unreported(), None) is not None

    def unreported(self) -> Iterator[int]:
        """The records whose failure no caller has got or is about to get."""
        return (index for index in range(self.count) if index not in self.reported and index not in self.notified)

    def report_all(self) -> bool:
        """Count all failures as reported but those of notified callers; return whether there are any of these."""
        self.reported.update(self.unreported())
        return bool(self.notified)

    def caller_resumed(self, index: int) -> None:
        """A caller that was notified of the outcome of a record runs."""
        left = self.notified.pop(index, 0) - 1
        if left > 0:
            self.notified[index] = left

    @property
    def wire_bytes(self) -> int:
        """Its size in a request in bytes; the uncompressed size until it is sealed."""
        return len(self.raw) or self.size_bytes

    def seal(self) -> None:
        """Build the bytes to send; if they exist, write the current sequence into their header."""
        if not self.raw:
            producer_id, epoch = self.producer
            self.raw = self.build(
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=self.sequence,
                is_transactional=self.is_transactional,
            )
            self.raw_bytes = self.size_bytes
            self.records.release()
        elif read_producer(self.raw) != (*self.producer, self.sequence):
            self.raw = with_producer(self.raw, *self.producer, self.sequence)

    def end(self, outcome: Written | Failed) -> None:
        """Set the outcome, release the records, call the listeners; the callbacks run in one turn of the loop."""
        assert self.outcome is None, "a batch has one outcome"
        self.outcome = outcome
        self.raw = b""
        self.records.release()
        listeners, self.listeners = self.listeners, []
        for index, listener in listeners:
            if listener() and isinstance(outcome, Failed):
                self.notified[index] = self.notified.get(index, 0) + 1
        if self.callbacks:
            callbacks, self.callbacks = self.callbacks, []
            self.reported.update([index for index, _, _ in callbacks])
            self.call_soon(_call_all, deque(callbacks), self.call_soon)

    def split(self, bytes_max: int, codec: Codec, level: int | None) -> tuple[Batch, ...]:
        """Return the records, at least two, in two or more batches of the same age; the listeners move to these."""
        bytes_max = min(bytes_max, BATCH_HEADER_BYTES + (self.raw_bytes - BATCH_HEADER_BYTES) // 2)
        parts = [Batch(self.queue, bytes_max, codec, level, self.created_ms)]
        starts = [0]
        for place, record in enumerate(read_records(self.raw)):
            if not parts[-1].append(record.timestamp, record.key, record.value, record.headers):
                parts.append(Batch(self.queue, bytes_max, codec, level, self.created_ms))
                starts.append(place)
                parts[-1].append(record.timestamp, record.key, record.value, record.headers)
            parts[-1].records.charged_bytes += record_bytes(record.key, record.value, record.headers)
        self.parts = tuple(zip(starts, parts, strict=True))
        for part in parts:
            part.is_transactional = self.is_transactional
            part.maybe_written, part.split_when_ambiguous, part.last_error = (
                self.maybe_written,
                self.maybe_written,
                self.last_error,
            )
        for index, listener in self.listeners:
            part, place = self.place(index)
            part.listeners.append((place, listener))
        for index, callback, argument in self.callbacks:
            part, place = self.place(index)
            part.callbacks.append((place, callback, argument))
            part.call_soon = self.call_soon
        self.raw, self.listeners, self.callbacks = b"", [], []
        return tuple(parts)

    def place(self, index: int) -> tuple[Batch, int]:
        """Return the batch that has the record now (this one or a part of it), and the record's index there."""
        batch = self
        while batch.parts:
            start, batch = next(entry for entry in reversed(batch.parts) if entry[0] <= index)
            index -= start
        return batch, index


class Queue:
    """`open` is the last of `batches` while it takes records; `on_wire` counts the batches in requests under way."""

    __slots__ = ("batches", "leader", "leader_epoch", "on_wire", "open", "partition", "partition_sequences")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.batches: deque[Batch] = deque()
        self.open: Batch | None = None
        self.on_wire = 0
        self.leader: int | None = None
        self.leader_epoch = -1
        self.partition_sequences = PartitionSequences()

    def lead(self, leader: int | None, epoch: int) -> None:
        """Set the leader. An older leader epoch than the known one changes nothing (KIP-320, KIP-951)."""
        if epoch >= self.leader_epoch or epoch < 0:
            self.leader, self.leader_epoch = leader, max(epoch, self.leader_epoch)

    def put_back(self, batch: Batch) -> None:
        """Queue a batch again, before all batches with a later sequence or without one."""
        if not batch.is_numbered:
            self.batches.appendleft(batch)
            return
        earlier = self.partition_sequences.before(batch)
        place = sum(1 for waiting in self.batches if waiting in earlier)
        self.batches.insert(place, batch)

    def take(self) -> Batch:
        """Remove and return the first batch; it accepts no more records."""
        batch = self.batches.popleft()
        if batch is self.open:
            self.open = None
        return batch


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """The upper bound of a record's size, as Java's producer estimates it."""
    size = RECORD_OVERHEAD_BYTES_MAX + (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
    for name, content in headers:
        size += HEADER_OVERHEAD_BYTES_MAX + len(name.encode("utf-8", "surrogateescape"))
        size += len(content) if content is not None else 0
    return size


def _call_all(callbacks: deque[Callback], call_soon: Callable[..., object]) -> None:
    """Call each callback. If one raises, the others are called in a later turn, and the loop handles the exception."""
    try:
        while callbacks:
            _, callback, argument = callbacks.popleft()
            callback(argument)
    finally:
        if callbacks:
            call_soon(_call_all, callbacks, call_soon)
