"""The state of a log's producers (KIP-98): their sequence numbers and their open transactions. Pure.

Laws
    A duplicate of one of a producer's last `BATCHES_PER_PRODUCER_MAX` batches is not written again; its response has
    the offsets of the first write.
    Sequences have no gap: the next batch begins where the last ended, int32 wrapping to 0.
    An older epoch is fenced; a newer one begins at sequence 0.
    A producer without state in the log (new, expired, or its records deleted) may begin at any sequence.
    XL8  Beyond `PRODUCERS_PER_LOG_MAX` the log removes the producer that wrote least recently and has no open
         transaction; while all have one, a new producer is refused.
    XL10 A snapshot has to pack a bounded number of producers, however many have changed since the last one.
    XL1  Replaying the batches of a log gives the state that writing them gave, and the same aborted transactions.
    XL2  The last stable offset is the high watermark, or the first offset of a transaction that is open or whose marker
         is above the high watermark. It never decreases while the high watermark does not.
    XL4  The first batch of a transaction is written only after a verification that began after the last marker.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from rota.coordinator.log.errors import AppendRefused
from rota.coordinator.log.producer import NO_EPOCH, NO_OFFSET, BatchMetadata, Producer
from rota.coordinator.log.transactions import AbortedTransaction
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.records.batch import SEQUENCE_MAX, TRANSACTIONAL_BIT, BatchHeader
from rota.protocol.records.control import Marker

PRODUCERS_PER_LOG_MAX: Final = 100_000
UNPACKED_MAX: Final = 1_000  # producers that a snapshot may have to pack
LastBatch = tuple[int, int]  # the last offset of a producer's last batch, or NO_OFFSET, and the producer's epoch


@dataclass(slots=True, eq=False)
class Verification:
    """A request to the transaction coordinator: is this partition in the producer's transaction (KIP-890)?

    The first batch of the transaction is written only if no marker came meanwhile. `lowest_sequence` is the lowest
    first sequence of the batches that wait; `began_ms` is the time of day.
    """

    producer_id: int
    epoch: int
    lowest_sequence: int
    began_ms: int
    is_v2: bool = False


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A transaction whose marker was written: its first offset and the offset of the marker."""

    first_offset: int
    last_offset: int


class Producers:
    """All producers of one log. `check` before a write, `record` after it and in replay."""

    __slots__ = ("_by_id", "_ended", "_idle", "_is_full", "_open", "_unpacked", "_verifications")

    def __init__(self, producers: Iterable[Producer] = (), *, is_full: bool = False) -> None:
        """`is_full`: there are more producers, so that a new one is refused."""
        self._is_full = is_full
        self._by_id: dict[int, Producer]
        self._open: dict[int, int]
        self._idle: OrderedDict[int, None]
        self._unpacked: dict[int, None]
        self._verifications: dict[int, Verification] = {}  # in the order of their beginnings
        self._ended: list[EndedTransaction] = []  # the marker may be above the high watermark
        self.load(producers)

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, producer_id: int) -> Producer | None:
        return self._by_id.get(producer_id)

    def all(self) -> list[Producer]:
        """Return all producers: those without an open transaction last, in the order of their last writes."""
        return [self._by_id[producer_id] for known in (self._open, self._idle) for producer_id in known]

    def last_batches(self) -> dict[int, LastBatch]:
        """Return each producer's last batch, for compaction: it keeps at least the header of that."""
        return {
            producer_id: (producer.sent[-1].last_offset if producer.sent else NO_OFFSET, producer.epoch)
            for producer_id, producer in self._by_id.items()
        }

    def has_room_for(self, producer_id: int) -> bool:
        """Return whether the producer is known, or may be added to the others."""
        if producer_id in self._by_id:
            return True
        return not self._is_full and (len(self._by_id) < PRODUCERS_PER_LOG_MAX or bool(self._idle))

    # ---- transactions

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of a transaction that is open, or whose marker may not be committed; None without one."""
        if not self._open and not self._ended:
            return None
        firsts = [ended.first_offset for ended in self._ended]
        return min([*firsts, next(iter(self._open.values()))] if self._open else firsts)

    def committed(self, high_watermark: int) -> None:
        """Forget the ended transactions whose marker is below the high watermark."""
        if self._ended:
            self._ended = [ended for ended in self._ended if ended.last_offset >= high_watermark]

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return where read_committed ends. From now on markers below this high watermark count as committed."""
        if not self._open and not self._ended:  # a log without transactions
            return high_watermark
        self.committed(high_watermark)
        unstable = self.first_unstable_offset
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Return whether the producer has a transaction with records here in that epoch."""
        producer = self._by_id.get(producer_id)
        return producer is not None and producer.epoch == epoch and producer.transaction_first_offset >= 0

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, now_ms: int, *, is_v2: bool = False
    ) -> Verification:
        """Return the verification for a transaction's first batch: the producer's, if one is under way.

        `is_v2`: the producer's epoch is bumped at each end of a transaction.
        """
        verification = self._verifications.get(producer_id)
        if verification is None:
            if len(self._verifications) >= PRODUCERS_PER_LOG_MAX:
                del self._verifications[next(iter(self._verifications))]
            verification = Verification(producer_id, epoch, sequence, now_ms, is_v2)
            self._verifications[producer_id] = verification
        elif verification.epoch < epoch:  # XL7: it stays the one of the batches that wait, whoever claims that epoch
            verification.epoch, verification.lowest_sequence = epoch, sequence
        elif verification.epoch == epoch:
            verification.lowest_sequence = min(verification.lowest_sequence, sequence)
        return verification

    def is_current(self, verification: Verification | None) -> bool:
        """Return whether no marker was written since the verification began."""
        return verification is not None and self._verifications.get(verification.producer_id) is verification

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, *, is_v2: bool = False) -> None:
        """Raise AppendRefused if a marker has an old epoch or comes from a former transaction coordinator.

        With `is_v2` the marker that ends a transaction has a higher epoch than its records (KIP-890).
        """
        producer = self._by_id.get(producer_id) or Producer(producer_id)
        is_old = epoch < producer.epoch
        if is_old or (is_v2 and epoch == producer.epoch and producer.transaction_first_offset >= 0):
            raise _fenced(producer, epoch)
        if coordinator_epoch < producer.coordinator_epoch:
            raise AppendRefused(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a marker of coordinator epoch {coordinator_epoch}, but {producer.coordinator_epoch} was seen",
            )

    # ---- batches

    def check(self, header: BatchHeader, verification: Verification | None = None) -> BatchMetadata | None:
        """Return the earlier batch when this one is a duplicate, else None. Raises AppendRefused.

        The first batch of a transaction needs the `verification` that began last for its producer.
        """
        producer = self._by_id.get(header.producer_id)
        if producer is not None and header.producer_epoch == producer.epoch:
            first, last = header.base_sequence, header.last_sequence
            for sent in producer.sent:
                if sent.last_sequence == last and sent.first_sequence == first:
                    return sent
        if header.attributes & TRANSACTIONAL_BIT:
            self._check_verified(header, verification)
        if producer is None:
            _check_epoch(Producer(header.producer_id), header)
            if not self.has_room_for(header.producer_id):
                raise AppendRefused(ErrorCode.NOT_ENOUGH_REPLICAS, "all producers that are kept have open transactions")
        else:
            _check_epoch(producer, header)
            _check_sequence(producer, header)
            if producer.transaction_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT:
                raise AppendRefused(ErrorCode.INVALID_TXN_STATE, "the producer has an open transaction")
        return None

    def _check_verified(self, header: BatchHeader, verification: Verification | None) -> None:
        if self.has_open_transaction(header.producer_id, header.producer_epoch):
            return
        known = self._verifications.get(header.producer_id)
        if known is None or not self.is_current(verification):
            raise AppendRefused(ErrorCode.INVALID_TXN_STATE, "the batch is not part of an ongoing transaction")
        if known.epoch == header.producer_epoch and header.base_sequence > known.lowest_sequence:
            raise _out_of_order(f"sequence {header.base_sequence} before {known.lowest_sequence}")
        if known.is_v2 and header.base_sequence != 0 and header.producer_id not in self._by_id:
            raise _out_of_order(f"producer {header.producer_id} begins a transaction at {header.base_sequence}")

    def record(self, header: BatchHeader, marker: Marker | None = None) -> AbortedTransaction | None:
        """Update the state after a write. `header` has the final offsets and timestamp of the batch.

        `marker` is that of a control batch. Returns the transaction that it aborts, if this log has records of it.
        """
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            producer = self._add(header.producer_id)
        elif producer.transaction_first_offset < 0:
            self._idle.move_to_end(header.producer_id)
        self._changed(producer)
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.sent.clear()
        producer.last_timestamp = header.max_timestamp
        if header.is_control:
            return None if marker is None else self._end_transaction(producer, header, marker)
        producer.sent.append(
            BatchMetadata(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
        )
        if header.is_transactional and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = header.base_offset
            self._open[header.producer_id] = header.base_offset
            del self._idle[header.producer_id]
            self._verifications.pop(header.producer_id, None)
        return None

    def _changed(self, producer: Producer) -> None:
        """XL10. Pack one that changed earlier, so that a snapshot of many producers does not have to pack them all."""
        producer.packed = None
        self._unpacked.pop(producer.producer_id, None)
        self._unpacked[producer.producer_id] = None
        if len(self._unpacked) > UNPACKED_MAX:
            oldest = next(iter(self._unpacked))
            del self._unpacked[oldest]
            if (known := self._by_id.get(oldest)) is not None:
                known.pack()

    def _end_transaction(self, producer: Producer, header: BatchHeader, marker: Marker) -> AbortedTransaction | None:
        producer.coordinator_epoch = max(marker.coordinator_epoch, producer.coordinator_epoch)
        self._verifications.pop(producer.producer_id, None)
        first = producer.transaction_first_offset
        if first < 0:
            return None
        producer.transaction_first_offset = -1
        del self._open[producer.producer_id]
        self._idle[producer.producer_id] = None
        self._ended.append(EndedTransaction(first, header.last_offset))
        if marker.is_commit:
            return None
        stable = next(iter(self._open.values()), header.last_offset + 1)
        return AbortedTransaction(producer.producer_id, first, header.last_offset, stable)

    def overlay(self, producer_ids: Iterable[int]) -> Producers:
        """Return a copy of these producers, to check several batches before any is written."""
        ids = set(producer_ids)
        found = (producer.copy() for producer in map(self._by_id.get, ids) if producer is not None)
        copied = Producers(found, is_full=not all(map(self.has_room_for, ids)))
        copied._verifications = {known: self._verifications[known] for known in ids & self._verifications.keys()}
        return copied

    def ended_before(self, offset: int) -> list[EndedTransaction]:
        """Return the ended transactions that a truncation at `offset` leaves, and whose marker may not be committed."""
        return [ended for ended in self._ended if ended.last_offset < offset]

    def add_ended(self, ended: Iterable[EndedTransaction]) -> None:
        """Add ended transactions that the snapshot does not have."""
        self._ended += [transaction for transaction in ended if transaction not in self._ended]

    def replace(self, restored: Producers) -> None:
        """Take over the state of producers that were restored in another thread; verifications end."""
        self._by_id, self._open, self._idle = restored._by_id, restored._open, restored._idle
        self._unpacked, self._ended = restored._unpacked, restored._ended
        self._verifications.clear()

    def clear(self) -> None:
        self.load(())

    def load(self, producers: Iterable[Producer]) -> None:
        """Replace the state with that of a snapshot."""
        self._by_id = {producer.producer_id: producer for producer in producers}
        open_first = sorted(
            (producer.transaction_first_offset, producer_id)
            for producer_id, producer in self._by_id.items()
            if producer.transaction_first_offset >= 0
        )
        self._open = {producer_id: first for first, producer_id in open_first}  # in the order of first offsets
        self._idle = OrderedDict.fromkeys(known for known in self._by_id if known not in self._open)  # by last write
        # those that a snapshot would have to pack, by their last change, and some that were removed
        self._unpacked = dict.fromkeys(known for known, producer in self._by_id.items() if producer.packed is None)
        self._ended.clear()
        self._verifications.clear()

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove each producer whose last batch is `expiration_ms` old, unless it has an open transaction."""
        for producer in self.all():
            if producer.transaction_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms:
                del self._by_id[producer.producer_id], self._idle[producer.producer_id]
        for verification in list(self._verifications.values()):
            if now_ms - verification.began_ms >= expiration_ms:
                del self._verifications[verification.producer_id]

    def _add(self, producer_id: int) -> Producer:
        """Add a producer; at the limit, in the place of the one that wrote least recently."""
        while len(self._by_id) >= PRODUCERS_PER_LOG_MAX and self._idle:
            del self._by_id[self._idle.popitem(last=False)[0]]
        producer = self._by_id[producer_id] = Producer(producer_id)
        self._idle[producer_id] = None
        return producer


def _check_epoch(producer: Producer, header: BatchHeader) -> None:
    if header.producer_epoch < producer.epoch:
        raise _fenced(producer, header.producer_epoch)


def _check_sequence(producer: Producer, header: BatchHeader) -> None:
    first = header.base_sequence
    if header.producer_epoch != producer.epoch:
        if first != 0 and producer.epoch != NO_EPOCH:
            raise _out_of_order(f"producer {producer.producer_id} begins epoch {header.producer_epoch} at {first}")
        return
    last = producer.last_sequence
    if first != last + 1 and not (first == 0 and last == SEQUENCE_MAX):
        raise _out_of_order(f"producer {producer.producer_id} sent sequence {first} after {last}")


def _fenced(producer: Producer, epoch: int) -> AppendRefused:
    return AppendRefused(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {producer.producer_id} has epoch {epoch}, but {producer.epoch} was seen",
    )


def _out_of_order(message: str) -> AppendRefused:
    return AppendRefused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)
