"""One producer of a log: its last batches, its open transaction, and its entries in a snapshot. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import field
from itertools import islice
from struct import Struct
from typing import Final

from rota.protocol.dataclass import dataclass
from rota.protocol.records.batch import SEQUENCE_MAX

BATCHES_PER_PRODUCER_MAX: Final = 5
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1
ENTRY: Final = Struct(">qhiqiqiq")


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


_NO_BATCH: Final = BatchMetadata(-1, -1, 0, -1)


@dataclass(slots=True)
class Producer:
    """The state of one producer id. It expires by `last_timestamp`, the timestamp (ms) of its last batch.

    `packed` are its entries in a snapshot; None since its last change.
    """

    producer_id: int
    epoch: int = NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction_first_offset: int = -1
    sent: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=BATCHES_PER_PRODUCER_MAX))
    packed: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def last_sequence(self) -> int:
        return self.sent[-1].last_sequence if self.sent else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The last offset of its last data batch; -1 when only its epoch is known."""
        return self.sent[-1].last_offset if self.sent else NO_OFFSET

    def copy(self) -> Producer:
        return Producer(
            self.producer_id,
            self.epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.transaction_first_offset,
            self.sent.copy(),
        )

    def pack(self) -> bytes:
        """Return the entries of a snapshot: one for each batch, the last one last. They are kept until a change."""
        sent = self.sent
        last = sent[-1] if sent else _NO_BATCH
        packed = self._entry(last, self.last_timestamp)
        if len(sent) > 1:
            earlier = [self._entry(batch, batch.timestamp) for batch in islice(sent, len(sent) - 1)]
            packed = b"".join([*earlier, packed])
        self.packed = packed
        return packed

    def _entry(self, batch: BatchMetadata, timestamp: int) -> bytes:
        return ENTRY.pack(
            self.producer_id,
            self.epoch,
            batch.last_sequence,
            batch.last_offset,
            batch.offset_delta,
            timestamp,
            self.coordinator_epoch,
            self.transaction_first_offset,
        )
