"""OffsetForLeaderEpoch, key 23, versions 2-4.

v2 current leader epoch (KIP-320) · v3 replica id · v4 flexible

A consumer sends it after a change of leader, to detect that the log was truncated below its position.
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.replica.leader_epochs import epoch_end, fence_leader
from rota.coordinator.replica.partition_lookup import PartitionLookup
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def offset_for_leader_epoch(
    node: Node, call: Call, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Return the end offset of each epoch; epoch and offset are -1 for an epoch that is not in the log."""
    partition_lookup = PartitionLookup(node.topics, node.partitions)
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_end(partition_lookup, topic.topic, requested) for requested in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _end(partition_lookup: PartitionLookup, name: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = partition_lookup.find((name, requested.partition))
    if partition is None:
        return EpochEndOffset(
            partition=requested.partition, error_code=partition_lookup.missing((name, requested.partition))
        )
    try:
        error = fence_leader(partition, requested.current_leader_epoch)
        if error is not ErrorCode.NONE:
            return EpochEndOffset(partition=requested.partition, error_code=error)
        epoch, end = epoch_end(partition, requested.leader_epoch)
    except StorageFailed:
        return EpochEndOffset(partition=requested.partition, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    return EpochEndOffset(partition=requested.partition, leader_epoch=epoch, end_offset=end)
