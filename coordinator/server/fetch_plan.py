"""What one fetch reads, and in which order: the limits of KIP-74, the fences of KIP-320.

Laws
    K1  Partitions are read in the order of the request until the answer is full.
    K2  The first batch of the first partition that has any comes whole, however large; no other exceeds the limits.
    K3  A consumer with another leader epoch than ours, or with records that we never had, gets no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rota.coordinator.log.contract import OffsetOutOfRange, StorageFailed
from rota.coordinator.server.epochs import epoch_end, fence
from rota.coordinator.server.fetch_sessions import Want
from rota.coordinator.server.places import Key, Places
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, PartitionData

if TYPE_CHECKING:
    from rota.coordinator.cluster.partition import Partition

UNKNOWN: Final = -1
NO_RECORDS: Final = b""

Told = tuple[Key, PartitionData]


@dataclass(slots=True)
class Reading:
    """What one pass over the plan found. `urgent`: something that the consumer must hear at once."""

    answers: list[Told] = field(default_factory=list)
    size_bytes: int = 0
    urgent: bool = False


class FetchPlan:
    """The partitions of one fetch. Those that are nowhere (`lost`) are answered with the others, and wake nobody."""

    __slots__ = ("_bytes_max", "_committed", "_old", "_places", "lost", "wants")

    def __init__(
        self, places: Places, wants: Iterable[tuple[Key, Want]], bytes_max: int, *, committed: bool, old: bool
    ) -> None:
        """`committed`: only what transactions left standing. `old`: a client that does not know all error codes."""
        self._places, self._bytes_max, self._committed, self._old = places, max(bytes_max, 0), committed, old
        self.wants: list[tuple[Key, Want]] = []
        self.lost: list[Told] = []
        for key, want in wants:
            error = places.missing(key)
            if error is ErrorCode.NONE:
                self.wants.append((key, want))
            else:
                self.lost.append((key, refused(key[1], error, committed=True)))

    def read(self) -> Reading:
        """Read what there is now."""
        reading, left, whole = Reading(), self._bytes_max, True
        for key, want in self.wants:
            answer = self._answer(key, want, min(max(want.bytes_max, 0), left), whole)
            size = len(answer.records or NO_RECORDS)
            if size:
                whole, left = False, max(left - size, 0)
                reading.size_bytes += size
            if answer.error_code or answer.diverging_epoch is not None:
                reading.urgent = True
            reading.answers.append((key, answer))
        reading.answers += self.lost
        return reading

    def watches(self, reading: Reading) -> Iterator[tuple[Partition, int, int]]:
        """(partition, bytes ready, bytes it may give at most) for a fetch that waits."""
        for (key, want), (_, answer) in zip(self.wants, reading.answers, strict=False):
            partition = self._places.find(key)
            assert partition is not None, "a partition of this turn is gone"
            yield partition, len(answer.records or NO_RECORDS), want.bytes_max

    def _answer(self, key: Key, want: Want, bytes_max: int, whole: bool) -> PartitionData:
        partition = self._places.find(key)
        if partition is None:
            return refused(key[1], self._places.missing(key), committed=self._committed)
        try:
            error = fence(partition, want.leader_epoch)
            if error is not ErrorCode.NONE:
                return refused(key[1], error, committed=self._committed)
            diverging = _diverging(partition, want)
            records = NO_RECORDS if diverging else _read(partition, want.offset, bytes_max, whole)
            return self._found(partition, records, diverging)
        except OffsetOutOfRange:
            return refused(key[1], ErrorCode.OFFSET_OUT_OF_RANGE, committed=self._committed)
        except StorageFailed:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER if self._old else ErrorCode.KAFKA_STORAGE_ERROR
            return refused(key[1], error, committed=self._committed)

    def _found(self, partition: Partition, records: bytes, diverging: EpochEndOffset | None) -> PartitionData:
        """Without transactions every record is stable, and none was ever aborted."""
        return PartitionData(
            partition_index=partition.index,
            error_code=0,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.high_watermark,
            log_start_offset=partition.log_start_offset,
            diverging_epoch=diverging,
            aborted_transactions=() if self._committed else None,
            records=records,
        )


def refused(index: int, error: ErrorCode, *, committed: bool) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=UNKNOWN,
        last_stable_offset=UNKNOWN,
        log_start_offset=UNKNOWN,
        aborted_transactions=() if committed else None,
        records=NO_RECORDS,
    )


def _read(partition: Partition, offset: int, bytes_max: int, whole: bool) -> bytes:
    """Raises OffsetOutOfRange, StorageFailed."""
    if offset == partition.high_watermark:
        return NO_RECORDS
    records = partition.read(offset, bytes_max)
    return records if whole or len(records) <= bytes_max else NO_RECORDS


def _diverging(partition: Partition, want: Want) -> EpochEndOffset | None:
    """Where the consumer's history parts from ours (KIP-595). Raises OffsetOutOfRange, StorageFailed."""
    if want.last_fetched_epoch == UNKNOWN:
        return None
    epoch, end = epoch_end(partition, want.last_fetched_epoch)
    start = partition.log_start_offset
    if UNKNOWN in (epoch, end) or want.offset < start:
        raise OffsetOutOfRange(want.offset, start, partition.high_watermark)
    if epoch < want.last_fetched_epoch or end < want.offset:
        return EpochEndOffset(epoch=epoch, end_offset=end)
    return None
