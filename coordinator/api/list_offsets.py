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
from rota.coordinator.log.contract import StorageFailed, TimedOffset
from rota.coordinator.replica.leader_epochs import fence
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partition_lookup import PartitionLookup
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
NO_TIMESTAMP: Final = -1
NOTHING: Final = TimedOffset(-1, NO_TIMESTAMP)


def _latest(partition: Partition) -> TimedOffset:
    return TimedOffset(partition.high_watermark, NO_TIMESTAMP, partition.leader_epoch)


def _earliest(partition: Partition) -> TimedOffset:
    """The first leader epoch of the log is the current one as long as leadership never moves."""
    return TimedOffset(partition.log_start_offset, NO_TIMESTAMP, partition.leader_epoch)


def _max_timestamp(partition: Partition) -> TimedOffset:
    return partition.log.max_timestamp() or NOTHING


def _nothing(partition: Partition) -> TimedOffset:
    return NOTHING


# What each negative timestamp stands for, and the version that brought it.
_SPECIAL: Final[dict[int, tuple[int, Callable[[Partition], TimedOffset]]]] = {
    LATEST: (1, _latest),
    EARLIEST: (1, _earliest),
    MAX_TIMESTAMP: (7, _max_timestamp),
    EARLIEST_LOCAL: (8, _earliest),
    LATEST_TIERED: (9, _nothing),
    EARLIEST_PENDING_UPLOAD: (11, _nothing),
}


def list_offsets(node: Node, call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """For each partition the first offset at or after a time, or what a negative time stands for."""
    partition_lookup = PartitionLookup(node.topics, node.partitions)
    return ListOffsetsResponse(topics=tuple(_topic(partition_lookup, call.version, topic) for topic in request.topics))


def _topic(partition_lookup: PartitionLookup, version: int, topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
    times = Counter(one.partition_index for one in topic.partitions)
    asked = {one.partition_index: one for one in topic.partitions}
    answers = (
        _refused(index, ErrorCode.INVALID_REQUEST)
        if times[index] > 1
        else _partition(partition_lookup, version, topic.name, one)
        for index, one in asked.items()
    )
    return ListOffsetsTopicResponse(name=topic.name, partitions=tuple(answers))


def _partition(
    partition_lookup: PartitionLookup, version: int, name: str, one: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    since, find = _SPECIAL.get(one.timestamp, (1, None))
    if version < since or (find is None and one.timestamp < 0):
        return _refused(one.partition_index, ErrorCode.UNSUPPORTED_VERSION)
    partition = partition_lookup.find((name, one.partition_index))
    if partition is None:
        return _refused(one.partition_index, partition_lookup.missing((name, one.partition_index)))
    try:
        error = fence(partition, one.current_leader_epoch)
        if error is not ErrorCode.NONE:
            return _refused(one.partition_index, error)
        found = find(partition) if find is not None else partition.log.offset_at(one.timestamp) or NOTHING
    except StorageFailed:
        return _refused(one.partition_index, ErrorCode.KAFKA_STORAGE_ERROR)
    return ListOffsetsPartitionResponse(
        partition_index=one.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _refused(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)
