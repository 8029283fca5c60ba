"""The state of a log's idempotent producers (KIP-98), and the check of their sequence numbers. Pure.

Laws
    A duplicate of one of a producer's last `BATCHES_PER_PRODUCER_MAX` batches is not written again; its response has
    the offsets of the first write.
    Sequences have no gap: the next batch begins where the last ended, int32 wrapping to 0.
    An older epoch is fenced; a newer one begins at sequence 0.
    A producer without state in the log (new, expired, or its records deleted) may begin at any sequence.
    Beyond `PRODUCERS_PER_LOG_MAX` the log removes the oldest producer.
    Replaying the batches of a log gives the state that writing them gave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from rota.coordinator.log.errors import AppendRefused
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import SEQUENCE_MAX, BatchHeader

BATCHES_PER_PRODUCER_MAX: Final = 5
PRODUCERS_PER_LOG_MAX: Final = 100_000
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """The sequences, offsets and timestamp (ms) of one batch in the log."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MAX

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class Producer:
    """The state of one producer id. It expires by `last_timestamp`, the timestamp (ms) of its last batch."""

    producer_id: int
    epoch: int = NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction_first_offset: int = -1
    sent: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=BATCHES_PER_PRODUCER_MAX))

    @property
    def last_sequence(self) -> int:
        return self.sent[-1].last_sequence if self.sent else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The last offset of its last data batch; -1 when only its epoch is known."""
        return self.sent[-1].last_offset if self.sent else -1

    def copy(self) -> Producer:
        return Producer(
            self.producer_id,
            self.epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.transaction_first_offset,
            self.sent.copy(),
        )


class Producers:
    """All producers of one log. `check` before a write, `record` after it and in replay."""

    __slots__ = ("_by_id",)

    def __init__(self, producers: Iterable[Producer] = ()) -> None:
        self._by_id = {producer.producer_id: producer for producer in producers}

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, producer_id: int) -> Producer | None:
        return self._by_id.get(producer_id)

    def all(self) -> list[Producer]:
        return list(self._by_id.values())

    def last_offsets(self) -> dict[int, Producer]:
        """Return a copy of the state, for compaction: it keeps at least the header of each producer's last batch."""
        return {producer_id: producer.copy() for producer_id, producer in self._by_id.items()}

    def check(self, header: BatchHeader) -> BatchMetadata | None:
        """Return the earlier batch when this one is a duplicate, else None. Raises AppendRefused."""
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            return None
        if header.producer_epoch == producer.epoch:
            first, last = header.base_sequence, header.last_sequence
            for sent in producer.sent:
                if sent.last_sequence == last and sent.first_sequence == first:
                    return sent
        _check_epoch(producer, header)
        _check_sequence(producer, header)
        return None

    def record(self, header: BatchHeader) -> None:
        """Update the state after a write. `header` has the final offsets and timestamp of the batch."""
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            if len(self._by_id) >= PRODUCERS_PER_LOG_MAX:
                del self._by_id[next(iter(self._by_id))]
            producer = self._by_id[header.producer_id] = Producer(header.producer_id)
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.sent.clear()
        producer.last_timestamp = header.max_timestamp
        if not header.is_control:
            producer.sent.append(
                BatchMetadata(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
            )

    def overlay(self, producer_ids: Iterable[int]) -> Producers:
        """Return a copy of these producers, to check several batches before any is written."""
        return Producers(
            producer.copy() for producer in map(self._by_id.get, set(producer_ids)) if producer is not None
        )

    def clear(self) -> None:
        self._by_id.clear()

    def load(self, producers: Iterable[Producer]) -> None:
        """Replace the state with that of a snapshot."""
        self._by_id = {producer.producer_id: producer for producer in producers}

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove each producer whose last batch is `expiration_ms` old, unless it has an open transaction."""
        for producer in self.all():
            if producer.transaction_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms:
                del self._by_id[producer.producer_id]


def _check_epoch(producer: Producer, header: BatchHeader) -> None:
    if header.producer_epoch < producer.epoch:
        raise AppendRefused(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer.producer_id} has epoch {header.producer_epoch}, but {producer.epoch} was seen",
        )


def _check_sequence(producer: Producer, header: BatchHeader) -> None:
    first = header.base_sequence
    if header.producer_epoch != producer.epoch:
        if first != 0 and producer.epoch != NO_EPOCH:
            raise _out_of_order(f"producer {producer.producer_id} begins epoch {header.producer_epoch} at {first}")
        return
    last = producer.last_sequence
    if first != last + 1 and not (first == 0 and last == SEQUENCE_MAX):
        raise _out_of_order(f"producer {producer.producer_id} sent sequence {first} after {last}")


def _out_of_order(message: str) -> AppendRefused:
    return AppendRefused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)
