"""ListOffsets, key 2, versions 1-11.

v2 isolation level · v4 leader epoch (KIP-320) · v6 flexible · v7 largest timestamp (KIP-734)
v8 earliest local offset (KIP-405) · v9 last tiered offset (KIP-1005) · v10 timeout · v11 earliest pending upload

Left out: tiered storage, and so everything is local and nothing was ever uploaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.log.contract import DamagedLog, Load, NotCached, StorageFailed, TimedOffset
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.replica.cold_reads import load_and_read
from rota.coordinator.replica.leader_epochs import fence, fence_leader
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partition_lookup import PartitionLookup
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
OFFSET_NOT_AVAILABLE_SINCE: Final = 5
CONSUMER, DEBUGGING_CONSUMER = -1, -2  # replica ids; followers answer the second one, too
READ_COMMITTED: Final = 1
NO_TIMESTAMP: Final = -1
NOTHING: Final = TimedOffset(-1, NO_TIMESTAMP)


def _earliest(partition: Partition) -> TimedOffset:
    """Return the log start offset, with the epoch of its record; the leader's epoch when the log is empty."""
    start, log = partition.log_start_offset, partition.log
    epoch = partition.leader_epoch if start == log.log_end_offset else log.epoch_at(start)
    return TimedOffset(start, NO_TIMESTAMP, epoch)


def _nothing(partition: Partition) -> TimedOffset:
    return NOTHING


Find = Callable[[Partition], TimedOffset]

# (first version, search that needs no records) of each negative timestamp
_SPECIAL: Final[dict[int, tuple[int, Find | None]]] = {
    LATEST: (1, None),
    EARLIEST: (1, _earliest),
    MAX_TIMESTAMP: (7, None),
    EARLIEST_LOCAL: (8, _earliest),
    LATEST_TIERED: (9, _nothing),
    EARLIEST_PENDING_UPLOAD: (11, _nothing),
}
_UNBOUNDED: Final = frozenset({EARLIEST, EARLIEST_LOCAL})  # the start may be the end of what can be fetched


def list_offsets(
    node: Node, call: Call, request: ListOffsetsRequest
) -> ListOffsetsResponse | DelayedReply[ListOffsetsResponse]:
    """Return for each partition the first offset at or after a timestamp, or the offset of a special timestamp.

    A search that needs records or indexes from the disk is answered when a thread has loaded them.
    """
    search = _Search(node, call, request)
    search.run(wait=False)
    return eager_tasks.start(_load_and_respond(search)) if search.loads else search.response()


async def _load_and_respond(search: _Search) -> ListOffsetsResponse:
    await load_and_read(search, lambda wait: search.run(wait=wait))
    return search.response()


class _Search:
    """The search of one request. Replica id and isolation level bound the offsets that it returns."""

    __slots__ = ("_partition_lookup", "_read_committed", "_replica_id", "_responses", "_topics", "_version", "loads")

    def __init__(self, node: Node, call: Call, request: ListOffsetsRequest) -> None:
        self._partition_lookup, self._version = PartitionLookup(node.topics, node.partitions), call.version
        self._replica_id, self._read_committed = request.replica_id, request.isolation_level == READ_COMMITTED
        self._topics = request.topics
        self._responses: dict[tuple[int, int], ListOffsetsPartitionResponse] = {}  # by positions of topic and partition
        self.loads: tuple[Load, ...] = ()

    def run(self, *, wait: bool) -> _Search:
        """Search the partitions that have no response yet. `loads` is what they need from the disk afterwards."""
        loads: list[Load] = []
        for at, topic in enumerate(self._topics):
            counts = Counter(partition.partition_index for partition in topic.partitions)
            for partition in topic.partitions:
                key = at, partition.partition_index
                if key in self._responses:
                    continue
                if counts[partition.partition_index] > 1:
                    self._responses[key] = _refused(partition.partition_index, ErrorCode.INVALID_REQUEST)
                    continue
                try:
                    self._responses[key] = self._partition(topic.name, partition, wait)
                except NotCached as cold:
                    loads += cold.loads
        self.loads = tuple(loads)
        return self

    def response(self) -> ListOffsetsResponse:
        """Return the responses in the order of the request. `loads` is empty."""
        return ListOffsetsResponse(topics=tuple(self._topic(at, topic) for at, topic in enumerate(self._topics)))

    def _topic(self, at: int, topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
        indexes = dict.fromkeys(partition.partition_index for partition in topic.partitions)
        responses = tuple(self._responses[at, index] for index in indexes)
        return ListOffsetsTopicResponse(name=topic.name, partitions=responses)

    def _partition(self, name: str, request: ListOffsetsPartition, wait: bool) -> ListOffsetsPartitionResponse:
        """Raises NotCached."""
        index, timestamp = request.partition_index, request.timestamp
        since, _ = _SPECIAL.get(timestamp, (1, None))
        if self._version < since or (timestamp < 0 and timestamp not in _SPECIAL):
            return _refused(index, ErrorCode.UNSUPPORTED_VERSION)
        partition = self._partition_lookup.find((name, index))
        if partition is None:
            return _refused(index, self._partition_lookup.missing((name, index)))
        try:
            check = fence if self._replica_id == DEBUGGING_CONSUMER else fence_leader
            error = check(partition, request.current_leader_epoch)
            found = NOTHING if error is not ErrorCode.NONE else self._find(partition, timestamp, wait)
        except DamagedLog:
            return _refused(index, ErrorCode.CORRUPT_MESSAGE)
        except StorageFailed:
            return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
        if error is ErrorCode.NONE and found is not None:
            return ListOffsetsPartitionResponse(
                partition_index=index,
                timestamp=found.timestamp,
                offset=found.offset,
                leader_epoch=found.leader_epoch,
            )
        return _refused(index, error or self._not_available())

    def _find(self, partition: Partition, timestamp: int, wait: bool) -> TimedOffset | None:
        """Return the offset; NOTHING when a consumer may not fetch it. Raises StorageFailed, NotCached.

        LO4. Returns None for such an offset while the high watermark has not reached the start of the leader's epoch.
        """
        end = self._fetchable_end(partition)
        epoch_start = partition.state.leader_epoch_start_offset
        is_lagging = self._replica_id == CONSUMER and epoch_start > partition.high_watermark  # LO4
        if timestamp == LATEST:
            return None if is_lagging else TimedOffset(end, NO_TIMESTAMP, partition.leader_epoch)
        _, find = _SPECIAL.get(timestamp, (1, None))
        if find is not None:
            found = find(partition)
        elif timestamp == MAX_TIMESTAMP:
            found = partition.max_timestamp(wait=wait) or NOTHING
        else:
            found = partition.offset_at(timestamp, wait=wait) or NOTHING
        if timestamp in _UNBOUNDED or found.offset < end:
            return found
        return None if is_lagging else NOTHING

    def _fetchable_end(self, partition: Partition) -> int:
        if self._replica_id != CONSUMER:
            return partition.log.log_end_offset
        return partition.last_stable_offset if self._read_committed else partition.high_watermark

    def _not_available(self) -> ErrorCode:
        is_known = self._version >= OFFSET_NOT_AVAILABLE_SINCE
        return ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE


def _refused(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)
