"""Plans the reads of one fetch: the limits of KIP-74, the epoch checks of KIP-320, followers and consumers.

Laws
    F8  Partitions are read in the order of the request until the response is full; no batch is read that does not fit.
    F9  The first batch of the first partition with records is returned whole; no other batch exceeds the limits.
    F10 A consumer with another leader epoch, or with a position that diverges from this log, gets no records.
    F12 A follower of the current leader epoch reads up to the log end; its fetch offset counts as its log end offset,
        once per request, and only if it is in this log. A broker that is no replica changes nothing.
    F13 Only a leader serves followers, and consumers before v11, which do not know fetches from followers (KIP-392); a
        follower serves other consumers up to its own high watermark.
    F15 A follower that is not in sync gets no records of a throttled partition while the leader's quota is exceeded.
    F16 read_committed ends at the last stable offset; the response names the aborted transactions with records in it.
    F11 The loop makes no read that would wait for the disk: `read(wait=False)` returns what to load first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, cast

from rota.coordinator.log.contract import DamagedLog, Load, NotCached, OffsetOutOfRange, StorageFailed
from rota.coordinator.replica.leader_epochs import NO_EPOCH, epoch_end, fence
from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.coordinator.replica.state import Role
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, FetchPartition, PartitionData

if TYPE_CHECKING:
    from rota.coordinator.log.file_part import Records
    from rota.coordinator.replica.partition import Partition
    from rota.coordinator.replica.replication_throttle import ReplicationThrottle

UNKNOWN: Final = -1
_LEADER: Final = Role.LEADER  # bound once: each fetch asks for it
NO_RECORDS: Final = b""
NOTHING_READ: Records = NO_RECORDS

PartitionResponse = tuple[Key, PartitionData]
IsUnchanged = Callable[[Key, int, int], bool]  # (partition, high watermark, log start): was that answered before?


@dataclass(slots=True)  # not frozen: one is made for each fetch, and a frozen one takes three times as long
class Reader:
    """The sender of a fetch. `replica_id` is UNKNOWN for a consumer.

    `leader_only`: the reader does not know of fetches from followers. `select_replica` returns the replica that a
    consumer should read from instead of this leader, or UNKNOWN (KIP-392). `throttle` is that of followers.
    """

    replica_id: int = UNKNOWN
    now_ms: int = 0
    read_committed: bool = False
    leader_only: bool = False
    select_replica: Callable[[Partition, int], int] | None = None
    throttle: ReplicationThrottle | None = None

    @property
    def is_follower(self) -> bool:
        return self.replica_id != UNKNOWN


CONSUMER: Final = Reader()


@dataclass(slots=True)
class FetchResult:
    """The result of one pass over the plan. `must_answer`: it has an error or a divergence, so the fetch does not wait.

    `loads` must be run in a thread before the next pass; while there are any, `responses` is incomplete.
    """

    responses: list[PartitionResponse] = field(default_factory=list)
    size_bytes: int = 0
    must_answer: bool = False
    loads: list[Load] = field(default_factory=list)


class FetchPlan:
    """The partitions of one fetch. Those that are not on this broker are `missing`; they get an error code."""

    __slots__ = (
        "_bytes_max",
        "_counts_sent",
        "_held_back",
        "_is_first_pass",
        "_is_unchanged",
        "_offline_error",
        "_partition_lookup",
        "_reader",
        "_to_send",
        "missing",
        "of_follower",
        "partitions",
    )

    def __init__(
        self,
        partition_lookup: PartitionLookup,
        requested: Iterable[tuple[Key, FetchPartition]],
        bytes_max: int,
        reader: Reader = CONSUMER,
        *,
        offline_error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR,
        is_unchanged: IsUnchanged | None = None,
        counts_sent: bool = True,
        to_send: bool = False,
    ) -> None:
        """`is_unchanged` omits the responses of unchanged partitions; without it there is one per partition.

        `counts_sent`: the sent bytes count as read by a consumer. `to_send`: the records of a response may be a part of
        a file, which has a length and is sent, see `Log.read_to_send`.
        """
        self._partition_lookup, self._bytes_max = partition_lookup, max(bytes_max, 0)
        self._reader, self._offline_error, self._is_unchanged = reader, offline_error, is_unchanged
        self._is_first_pass, self.of_follower = True, reader.is_follower
        self._counts_sent, self._to_send = counts_sent and not reader.is_follower, to_send
        self.partitions: list[tuple[Key, FetchPartition, Partition]] = []
        self.missing: list[PartitionResponse] = []
        self._held_back: set[Key] = set()  # by the throttle, in the last pass
        for key, request in requested:
            partition = partition_lookup.find(key)
            if partition is not None:
                self.partitions.append((key, request, partition))
            else:
                self._add_missing(key)

    def look_up_again(self) -> None:
        """Leave out the partitions that the lookup does not find any more; they are `missing` from now on."""
        planned, self.partitions = self.partitions, []
        for key, request, partition in planned:
            if self._partition_lookup.find(key) is partition:
                self.partitions.append((key, request, partition))
            else:
                self._add_missing(key)

    def _add_missing(self, key: Key) -> None:
        error = self._partition_lookup.missing(key)
        self.missing.append((key, refused(key[1], error, read_committed=True)))

    def read(self, *, wait: bool = True) -> FetchResult:
        """Read the available records; with `wait=False` only those in memory."""
        result, left, is_first = FetchResult(), self._bytes_max, True
        self._held_back.clear()
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
            if _ends_wait(request, response):
                result.must_answer = True
            result.responses.append((key, response))
        result.responses += self.missing
        self._is_first_pass = False  # F12. Also if records have to be loaded first
        return result

    def count_sent(self, responses: Sequence[PartitionResponse]) -> None:
        """Count the bytes sent to consumers and to throttled followers; not those that this broker reads itself."""
        throttle = self._reader.throttle
        if not self._counts_sent and throttle is None:
            return
        for key, response in responses:
            if response.records:
                partition = self._partition_lookup.find(key)
                if partition is None:
                    continue
                if throttle is not None:
                    throttle.record(partition.topic, partition.index, len(response.records))
                else:
                    partition.bytes_out += len(response.records)

    def watches(self, result: FetchResult) -> Iterator[tuple[Partition, int, int]]:
        """(partition, bytes ready, bytes it may give at most) for a fetch that waits."""
        ready = {key: len(response.records or NO_RECORDS) for key, response in result.responses}
        for key, request, partition in self.partitions:
            if key in self._held_back:
                continue  # what is appended there would not be sent
            yield partition, ready.get(key, 0), request.partition_max_bytes

    def _respond(
        self, key: Key, request: FetchPartition, partition: Partition, bytes_max: int, is_first: bool, wait: bool
    ) -> PartitionData | None:
        """Return the response of one partition, or None if it is unchanged. Raises NotCached."""
        try:
            log, state, reader, offset = partition.log, partition.state, self._reader, request.fetch_offset
            of_follower, is_leader = self.of_follower, state.role is _LEADER
            is_fenced = of_follower or not is_leader or request.current_leader_epoch > NO_EPOCH
            if is_fenced and (error := self._forbidden(partition, request.current_leader_epoch)):
                return self._refuse(key, error)
            start, diverging, preferred, records = log.log_start_offset, None, UNKNOWN, NOTHING_READ
            if request.last_fetched_epoch > NO_EPOCH:
                diverging = _diverging(partition, request, start)
            if of_follower and diverging is None and self._is_first_pass:
                self._follower_fetched(partition, request, start)
            if reader.select_replica is not None and is_leader:
                preferred = reader.select_replica(partition, offset)
            high_watermark, last_stable = state.high_watermark, partition.last_stable_offset
            if diverging is None and preferred == UNKNOWN:
                end = log.log_end_offset if of_follower else last_stable if reader.read_committed else high_watermark
                has_more = offset != end
                if has_more and (reader.throttle is None or not self._is_held_back(key, partition, reader.throttle)):
                    records = self._records(partition, offset, bytes_max, end, is_first, wait)
                elif self._is_unchanged is not None and self._is_unchanged(key, high_watermark, start):
                    return None
            aborted = _aborted(partition, offset, len(records), wait) if reader.read_committed else None
        except OffsetOutOfRange:
            return self._refuse(key, _out_of_range(partition, request))
        except StorageFailed as error:
            return self._refuse(key, self._storage_error(key, partition, error))
        return PartitionData(
            partition_index=key[1],
            high_watermark=high_watermark,
            last_stable_offset=last_stable,
            log_start_offset=start,
            diverging_epoch=diverging,
            aborted_transactions=aborted,
            preferred_read_replica=preferred,
            records=cast("bytes", records),  # the encoder passes a part of a file on as it is
        )

    def _records(
        self, partition: Partition, offset: int, bytes_max: int, until: int, is_first: bool, wait: bool
    ) -> Records:
        return partition.read(offset, bytes_max, until=until, first_whole=is_first, wait=wait, to_send=self._to_send)

    def _forbidden(self, partition: Partition, leader_epoch: int) -> ErrorCode:
        """F10, F12, F13. Return the error code for this reader; NONE if it may read. Raises StorageFailed."""
        error, reader = fence(partition, leader_epoch), self._reader
        if error is not ErrorCode.NONE:
            return error
        if not partition.is_leader:
            is_allowed = not (reader.is_follower or reader.leader_only)
            return ErrorCode.NONE if is_allowed else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not reader.is_follower:
            return ErrorCode.NONE
        is_replica = partition.state.fetch_state(reader.replica_id) is not None
        return ErrorCode.NONE if is_replica else ErrorCode.UNKNOWN_LEADER_EPOCH  # as in Kafka

    def _follower_fetched(self, partition: Partition, request: FetchPartition, start: int) -> None:
        """F12. Update the follower's fetch state. Raises OffsetOutOfRange."""
        offset, end, reader = request.fetch_offset, partition.log.log_end_offset, self._reader
        if not start <= offset <= end:
            raise OffsetOutOfRange(offset, start, end)
        partition.follower_fetched(reader.replica_id, offset, reader.now_ms, request.log_start_offset)

    def _is_held_back(self, key: Key, partition: Partition, throttle: ReplicationThrottle) -> bool:
        """F15."""
        is_in_sync = self._reader.replica_id in partition.state.isr
        is_held_back = throttle.is_held_back(partition.topic, partition.index, is_in_sync=is_in_sync)
        if is_held_back:
            self._held_back.add(key)
        return is_held_back

    def _refuse(self, key: Key, error: ErrorCode) -> PartitionData:
        return refused(key[1], error, read_committed=self._reader.read_committed)

    def _storage_error(self, key: Key, partition: Partition, error: StorageFailed) -> ErrorCode:
        """Return the error of a partition that is damaged, offline, or was removed while the fetch waited."""
        if isinstance(error, DamagedLog):
            return ErrorCode.CORRUPT_MESSAGE
        if self._partition_lookup.find(key) is not partition:
            return self._partition_lookup.missing(key) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._offline_error


def _aborted(partition: Partition, offset: int, size_bytes: int, wait: bool) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions with records in that read. Raises StorageFailed, NotCached."""
    if not size_bytes:
        return ()
    found = partition.aborted_transactions(offset, size_bytes, wait=wait)
    if not found:
        return ()
    return tuple(
        AbortedTransaction(producer_id=transaction.producer_id, first_offset=transaction.first_offset)
        for transaction in found
    )


def _ends_wait(request: FetchPartition, response: PartitionData) -> bool:
    """Return whether such a response is sent at once.

    `high_watermark` of the request is the one that the follower has (KIP-1166); without the field, no high watermark
    is sent at once.
    """
    return (
        response.error_code != ErrorCode.NONE
        or response.diverging_epoch is not None
        or response.preferred_read_replica != UNKNOWN
        or request.high_watermark < response.high_watermark
    )


def _out_of_range(partition: Partition, request: FetchPartition) -> ErrorCode:
    """Return the error for an offset out of range; on a follower that may be behind, one that is retried (KIP-392)."""
    is_ahead = not partition.is_leader and request.fetch_offset > partition.high_watermark
    return ErrorCode.OFFSET_NOT_AVAILABLE if is_ahead else ErrorCode.OFFSET_OUT_OF_RANGE


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
    """Return where the reader's log diverges from this one (KIP-595). Raises OffsetOutOfRange, StorageFailed.

    F13. A follower knows it of what is committed: its reader may be ahead of it.
    """
    epoch, end = epoch_end(partition, request.last_fetched_epoch)
    if UNKNOWN in (epoch, end) or request.fetch_offset < start:
        raise OffsetOutOfRange(request.fetch_offset, start, partition.high_watermark)
    diverges = epoch < request.last_fetched_epoch or end < request.fetch_offset
    if diverges and (partition.is_leader or min(end, request.fetch_offset) < partition.high_watermark):
        return EpochEndOffset(epoch=epoch, end_offset=end)
    return None
