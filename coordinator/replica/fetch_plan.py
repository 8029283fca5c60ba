"""What one fetch reads, and in which order: the limits of KIP-74, the fences of KIP-320.

Laws
    F8  Partitions are read in the order of the request until the answer is full; nothing is read that does not fit.
    F9  The first batch of the first partition that has any comes whole, however large; no other exceeds the limits.
    F10 A consumer with another leader epoch than ours, or with records that we never had, gets no records.
    F11 A read that would wait for the disk is not made on the loop: `read(wait=False)` says what to load first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rota.coordinator.log.contract import Load, NotCached, OffsetOutOfRange, StorageFailed
from rota.coordinator.replica.leader_epochs import NO_EPOCH, epoch_end, fence
from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, FetchPartition, PartitionData

if TYPE_CHECKING:
    from rota.coordinator.replica.partition import Partition

UNKNOWN: Final = -1
NO_RECORDS: Final = b""

PartitionResponse = tuple[Key, PartitionData]
IsUnchanged = Callable[[Key, int, int], bool]  # (partition, high watermark, log start): was that answered before?


@dataclass(slots=True)
class FetchResult:
    """What one pass over the plan found. `must_answer`: an error or a truncation, for which no fetch waits.

    `loads` are to be run in a thread before the next pass; while there are any, `responses` leaves partitions out.
    """

    responses: list[PartitionResponse] = field(default_factory=list)
    size_bytes: int = 0
    must_answer: bool = False
    loads: list[Load] = field(default_factory=list)


class FetchPlan:
    """The partitions of one fetch. Those that are not on this broker are `missing`, and answered with the others."""

    __slots__ = (
        "_bytes_max",
        "_is_unchanged",
        "_offline_error",
        "_partition_lookup",
        "_read_committed",
        "missing",
        "partitions",
    )

    def __init__(
        self,
        partition_lookup: PartitionLookup,
        requested: Iterable[tuple[Key, FetchPartition]],
        bytes_max: int,
        *,
        read_committed: bool = False,
        offline_error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR,
        is_unchanged: IsUnchanged | None = None,
    ) -> None:
        """`is_unchanged` leaves out responses that would say nothing new; without it there is one per partition."""
        self._partition_lookup, self._bytes_max = partition_lookup, max(bytes_max, 0)
        self._read_committed, self._offline_error, self._is_unchanged = read_committed, offline_error, is_unchanged
        self.partitions: list[tuple[Key, FetchPartition, Partition]] = []
        self.missing: list[PartitionResponse] = []
        for key, request in requested:
            partition = partition_lookup.find(key)
            if partition is not None:
                self.partitions.append((key, request, partition))
            else:
                self.missing.append((key, refused(key[1], partition_lookup.missing(key), read_committed=True)))

    def read(self, *, wait: bool = True) -> FetchResult:
        """Read what there is now. With `wait=False` only what is in memory."""
        result, left, is_first = FetchResult(), self._bytes_max, True
        for key, request, partition in self.partitions:
            bytes_max = min(max(request.partition_max_bytes, 0), left)
            try:
                response = self._respond(key, request, partition, bytes_max, is_first, wait)
            except NotCached as cold:
                result.loads += cold.loads
                is_first, left = False, left - bytes_max  # as if it had filled its limit
                continue
            if response is None:
                continue
            size = len(response.records or NO_RECORDS)
            if size:
                is_first, left = False, max(left - size, 0)
                result.size_bytes += size
            if response.error_code or response.diverging_epoch is not None:
                result.must_answer = True
            result.responses.append((key, response))
        result.responses += self.missing
        return result

    def watches(self, result: FetchResult) -> Iterator[tuple[Partition, int, int]]:
        """(partition, bytes ready, bytes it may give at most) for a fetch that waits."""
        ready = {key: len(response.records or NO_RECORDS) for key, response in result.responses}
        for key, request, partition in self.partitions:
            yield partition, ready.get(key, 0), request.partition_max_bytes

    def _respond(
        self, key: Key, request: FetchPartition, partition: Partition, bytes_max: int, is_first: bool, wait: bool
    ) -> PartitionData | None:
        """None when there is nothing new to say. Raises NotCached."""
        try:
            log = partition.log
            if request.current_leader_epoch != NO_EPOCH:
                error = fence(partition, request.current_leader_epoch)
                if error is not ErrorCode.NONE:
                    return refused(key[1], error, read_committed=self._read_committed)
            end, start = partition.high_watermark, log.log_start_offset
            diverging = None if request.last_fetched_epoch == NO_EPOCH else _diverging(partition, request, start)
            records = NO_RECORDS
            if diverging is None:
                if request.fetch_offset != end:
                    records = partition.read(request.fetch_offset, bytes_max, first_whole=is_first, wait=wait)
                elif self._is_unchanged is not None and self._is_unchanged(key, end, start):
                    return None
        except OffsetOutOfRange:
            return refused(key[1], ErrorCode.OFFSET_OUT_OF_RANGE, read_committed=self._read_committed)
        except StorageFailed:
            return refused(key[1], self._unavailable(key, partition), read_committed=self._read_committed)
        return PartitionData(
            partition_index=key[1],
            high_watermark=end,
            last_stable_offset=partition.state.last_stable_offset,
            log_start_offset=start,
            diverging_epoch=diverging,
            aborted_transactions=() if self._read_committed else None,  # without transactions none was ever aborted
            records=records,
        )

    def _unavailable(self, key: Key, partition: Partition) -> ErrorCode:
        """The error of a partition that is offline, or that was removed while the fetch waited."""
        if self._partition_lookup.find(key) is not partition:
            return self._partition_lookup.missing(key) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._offline_error


def refused(index: int, error: ErrorCode, *, read_committed: bool) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=UNKNOWN,
        last_stable_offset=UNKNOWN,
        log_start_offset=UNKNOWN,
        aborted_transactions=() if read_committed else None,
        records=NO_RECORDS,
    )


def _diverging(partition: Partition, request: FetchPartition, start: int) -> EpochEndOffset | None:
    """Where the consumer's log parts from ours (KIP-595). Raises OffsetOutOfRange, StorageFailed."""
    epoch, end = epoch_end(partition, request.last_fetched_epoch)
    if UNKNOWN in (epoch, end) or request.fetch_offset < start:
        raise OffsetOutOfRange(request.fetch_offset, start, partition.high_watermark)
    if epoch < request.last_fetched_epoch or end < request.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end)
    return None
