"""What one fetch reads, and in which order: the limits of KIP-74, the fences of KIP-320.

Laws
    F8  Partitions are read in the order of the request until the answer is full.
    F9  The first batch of the first partition that has any comes whole, however large; no other exceeds the limits.
    F10 A consumer with another leader epoch than ours, or with records that we never had, gets no records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rota.coordinator.log.contract import OffsetOutOfRange, StorageFailed
from rota.coordinator.replica.fetch_sessions import FetchPartition
from rota.coordinator.replica.leader_epochs import NO_EPOCH, epoch_end, fence
from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, PartitionData

if TYPE_CHECKING:
    from rota.coordinator.replica.partition import Partition

UNKNOWN: Final = -1
NO_RECORDS: Final = b""

PartitionResponse = tuple[Key, PartitionData]
Knows = Callable[[Key, int, int], bool]  # (partition, its high watermark, its log start): was all of that told before?


@dataclass(slots=True)
class Reading:
    """What one pass over the plan found. `urgent`: something that the consumer must hear at once."""

    answers: list[PartitionResponse] = field(default_factory=list)
    size_bytes: int = 0
    urgent: bool = False


class FetchPlan:
    """The partitions of one fetch. Those that are nowhere (`lost`) are answered with the others, and wake nobody."""

    __slots__ = ("_bytes_max", "_committed", "_knows", "_old", "_partition_lookup", "lost", "wants")

    def __init__(
        self,
        partition_lookup: PartitionLookup,
        wants: Iterable[tuple[Key, FetchPartition]],
        bytes_max: int,
        *,
        committed: bool,
        old: bool,
        knows: Knows | None = None,
    ) -> None:
        """`committed`: only what transactions left standing. `old`: a client that does not know all error codes.

        `knows` spares the answers that would say nothing new; without it there is one for each partition.
        """
        self._partition_lookup, self._bytes_max, self._committed, self._old = (
            partition_lookup,
            max(bytes_max, 0),
            committed,
            old,
        )
        self._knows = knows
        self.wants: list[tuple[Key, FetchPartition, Partition]] = []
        self.lost: list[PartitionResponse] = []
        for key, want in wants:
            partition = partition_lookup.find(key)
            if partition is not None:
                self.wants.append((key, want, partition))
            else:
                self.lost.append((key, refused(key[1], partition_lookup.missing(key), committed=True)))

    def read(self) -> Reading:
        """Read what there is now."""
        reading, left, whole = Reading(), self._bytes_max, True
        for key, want, partition in self.wants:
            answer = self._answer(key, want, partition, left, whole)
            if answer is None:
                continue
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
        ready = {key: len(answer.records or NO_RECORDS) for key, answer in reading.answers}
        for key, want, partition in self.wants:
            yield partition, ready.get(key, 0), want.bytes_max

    def _answer(
        self, key: Key, want: FetchPartition, partition: Partition, left: int, whole: bool
    ) -> PartitionData | None:
        """None when there is nothing new to say."""
        try:
            log = partition.log
            if want.leader_epoch != NO_EPOCH:
                error = fence(partition, want.leader_epoch)
                if error is not ErrorCode.NONE:
                    return refused(key[1], error, committed=self._committed)
            end, start = partition.high_watermark, log.log_start_offset
            diverging = None if want.last_fetched_epoch == NO_EPOCH else _diverging(partition, want, start)
            records = NO_RECORDS
            if diverging is None:
                if want.offset != end:
                    records = _read(partition, want, left, whole)
                elif self._knows is not None and self._knows(key, end, start):
                    return None
        except OffsetOutOfRange:
            return refused(key[1], ErrorCode.OFFSET_OUT_OF_RANGE, committed=self._committed)
        except StorageFailed:
            return refused(key[1], self._trouble(key, partition), committed=self._committed)
        return PartitionData(
            partition_index=key[1],
            high_watermark=end,
            last_stable_offset=end,  # without transactions every record is stable, and none was ever aborted
            log_start_offset=start,
            diverging_epoch=diverging,
            aborted_transactions=() if self._committed else None,
            records=records,
        )

    def _trouble(self, key: Key, partition: Partition) -> ErrorCode:
        """What is wrong with a partition that is offline, or that went while the fetch waited."""
        if self._partition_lookup.find(key) is not partition:
            return self._partition_lookup.missing(key) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if self._old else ErrorCode.KAFKA_STORAGE_ERROR


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


def _read(partition: Partition, want: FetchPartition, left: int, whole: bool) -> bytes:
    """Raises OffsetOutOfRange, StorageFailed."""
    bytes_max = min(max(want.bytes_max, 0), left)
    records = partition.read(want.offset, bytes_max)
    return records if whole or len(records) <= bytes_max else NO_RECORDS


def _diverging(partition: Partition, want: FetchPartition, start: int) -> EpochEndOffset | None:
    """Where the consumer's history parts from ours (KIP-595). Raises OffsetOutOfRange, StorageFailed."""
    epoch, end = epoch_end(partition, want.last_fetched_epoch)
    if UNKNOWN in (epoch, end) or want.offset < start:
        raise OffsetOutOfRange(want.offset, start, partition.high_watermark)
    if epoch < want.last_fetched_epoch or end < want.offset:
        return EpochEndOffset(epoch=epoch, end_offset=end)
    return None
