"""Idempotence (KIP-98, KIP-360): the sequences of batches, and what to do after sequence errors. Pure.

Laws
    Under one producer id and epoch, the sequences of a partition's batches have no gap and no overlap, and a batch
    keeps its sequence in every attempt, so that the broker detects it as a duplicate.
    A batch gets a new sequence, under a higher epoch, only when no batch of the partition is on the wire and the broker
    cannot have it; a batch of a transaction never does.
    A numbered batch that is sent again is the first incomplete one, because the broker accepts no later one before it.
    At most five batches of a partition are numbered and incomplete: a broker remembers five.
    Until the broker is known to have one batch of an identity, only one is on the wire: a broker without state of the
    producer accepts any first sequence, even that of a second batch whose predecessor it refused.

This differs from Kafka's TransactionManager in two points: that one renumbers also batches that are on the wire, and it
sends several before the first is known to be written, which reverses their order if a new topic's leader is not ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol

from rota.protocol.errors import ErrorCode

ProducerId = tuple[int, int]  # id, epoch
NO_PRODUCER_ID: Final = (-1, -1)
EPOCH_MAX: Final = (1 << 15) - 1
NUMBERED_MAX: Final = 5


class SequencedBatch(Protocol):
    """The fields of a batch that concern its sequence."""

    producer: ProducerId
    sequence: int
    maybe_written: bool
    split_when_ambiguous: bool

    @property
    def is_numbered(self) -> bool: ...
    @property
    def end_sequence(self) -> int: ...


class SequenceErrorAction(Enum):
    """What to do with a batch after a sequence error."""

    RETRY = "what comes before it is not done yet"
    RENUMBER = "the broker does not have it: again, under a new epoch"
    GIVE_UP = "the broker no longer knows whether it was written"


class PartitionSequences:
    """One partition's sequences. `numbered`: the batches that have one and are not done, in order.

    `gap`: a numbered batch failed, and it is not known yet whether the broker has it. `renumbers`: the broker does not
    have it, so that all later batches need new sequences. `known`: the broker has a batch of this producer.
    """

    __slots__ = ("acked", "gap", "known", "next", "numbered", "producer", "renumbers")

    def __init__(self) -> None:
        self.producer: ProducerId = NO_PRODUCER_ID
        self.next = 0
        self.acked = 0  # the sequence after the last one that the broker is known to have
        self.numbered: list[SequencedBatch] = []
        self.known = False
        self.gap = False
        self.renumbers = False

    def begin(self, producer: ProducerId) -> None:
        """Start at sequence 0 under this identity and renumber the numbered batches."""
        self.producer, self.next, self.acked = producer, 0, 0
        self.known = self.gap = self.renumbers = False
        for batch in self.numbered:
            self._number(batch)

    def add(self, batch: SequencedBatch) -> None:
        """Assign the next sequence to the batch."""
        self._number(batch)
        self.numbered.append(batch)

    def before(self, batch: SequencedBatch) -> list[SequencedBatch]:
        """Return the incomplete batches with earlier sequences."""
        return self.numbered[: self.numbered.index(batch)]

    def replace(self, batch: SequencedBatch, parts: Sequence[SequencedBatch]) -> None:
        """Replace a split batch by its parts, which share its sequence numbers."""
        sequence = batch.sequence
        for part in parts:
            part.producer, part.sequence = batch.producer, sequence
            sequence = part.end_sequence
        at = self.numbered.index(batch)
        self.numbered[at : at + 1] = parts

    @property
    def is_broken(self) -> bool:
        """Whether the broker may not accept the next sequence of this identity."""
        return self.gap or self.renumbers

    def _number(self, batch: SequencedBatch) -> None:
        batch.producer, batch.sequence = self.producer, self.next
        self.next = batch.end_sequence


class Sequences:
    """The identity of a producer; None until the cluster has assigned one, and again when its epochs are used up.

    With `is_transactional` only the transaction coordinator changes the epoch: a sequence error fails the batch, and
    with it the transaction.
    """

    def __init__(self, *, is_transactional: bool = False) -> None:
        self.producer: ProducerId | None = None
        self.is_transactional = is_transactional

    def is_sendable(self, sequences: PartitionSequences, batch: SequencedBatch) -> bool:
        """Whether the batch, the first that waits, may go on the wire now."""
        if self.producer is None or sequences.renumbers:
            return False
        if batch.is_numbered:
            return sequences.numbered[0] is batch
        if sequences.gap or len(sequences.numbered) >= NUMBERED_MAX:
            return False
        return not sequences.numbered or (sequences.known and sequences.producer == self.producer)

    def number(self, sequences: PartitionSequences, batch: SequencedBatch) -> None:
        """Assign a sequence to the batch before its first attempt."""
        assert self.producer is not None
        if sequences.producer != self.producer:
            sequences.begin(self.producer)
        sequences.add(batch)

    def action_after_error(
        self, sequences: PartitionSequences, batch: SequencedBatch, code: int
    ) -> SequenceErrorAction | None:
        """Return the action after a sequence error; None for other codes."""
        if code not in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
            return None
        if sequences.numbered[0] is not batch:
            return SequenceErrorAction.RETRY
        is_forgotten = code == ErrorCode.UNKNOWN_PRODUCER_ID and batch.maybe_written
        if self.is_transactional or batch.split_when_ambiguous or is_forgotten:
            return SequenceErrorAction.GIVE_UP
        sequences.renumbers = True
        return SequenceErrorAction.RENUMBER

    def delivered(self, sequences: PartitionSequences, batch: SequencedBatch) -> None:
        """The broker has the batch, which may have failed before that was known."""
        if batch in sequences.numbered:
            sequences.numbered.remove(batch)
        if batch.producer == sequences.producer:
            sequences.acked, sequences.known = batch.end_sequence, True

    def given_up(self, sequences: PartitionSequences, batch: SequencedBatch, *, maybe_written: bool) -> None:
        """The batch has failed and is not sent again."""
        if batch not in sequences.numbered:
            return
        sequences.numbered.remove(batch)
        if maybe_written:
            sequences.gap = True
        else:
            sequences.renumbers = True

    def resolve_gaps(self, sequences: PartitionSequences) -> None:
        """Resolve gaps while no batch of the partition is on the wire; begin a new epoch if that is needed."""
        if sequences.gap and not sequences.numbered:
            sequences.gap = False
            sequences.renumbers = sequences.renumbers or sequences.acked != sequences.next
        if not sequences.renumbers:
            return
        if sequences.producer == self.producer:
            if self.is_transactional:
                return
            self._bump()
        if self.producer is not None:
            sequences.begin(self.producer)

    def _bump(self) -> None:
        assert self.producer is not None
        number, epoch = self.producer
        self.producer = (number, epoch + 1) if epoch < EPOCH_MAX else None
