"""DeleteRecords, key 21, versions 0-2.

v2 flexible. Moves the log start offset forward (KIP-107). There are no followers to wait for: `timeout_ms` is unused.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.metadata.topic import INTERNAL
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partition_lookup import PartitionLookup
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK: Final = -1
NO_WATERMARK: Final = -1


def delete_records(node: Node, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete the records before each offset (-1: the high watermark). Returns the new start of each log."""
    partition_lookup = PartitionLookup(node.topics, node.partitions)
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(_delete(partition_lookup, topic.name, deletion) for deletion in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _delete(
    partition_lookup: PartitionLookup, name: str, deletion: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    partition = partition_lookup.find((name, deletion.partition_index))
    if partition is None:
        return _refused(deletion, partition_lookup.missing((name, deletion.partition_index)))
    try:
        error = _forbidden(partition)
        if error is not ErrorCode.NONE:
            return _refused(deletion, error)
        upto = partition.high_watermark if deletion.offset == HIGH_WATERMARK else deletion.offset
        if not 0 <= upto <= partition.high_watermark:
            return _refused(deletion, ErrorCode.OFFSET_OUT_OF_RANGE)
        start = partition.delete_before(upto)
    except StorageFailed:
        return _refused(deletion, ErrorCode.KAFKA_STORAGE_ERROR)
    return DeleteRecordsPartitionResult(partition_index=deletion.partition_index, low_watermark=start)


def _forbidden(partition: Partition) -> ErrorCode:
    """Records of internal topics and of topics that are only compacted can not be deleted."""
    if partition.topic in INTERNAL:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.NONE if partition.log.config.delete else ErrorCode.POLICY_VIOLATION


def _refused(deletion: DeleteRecordsPartition, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=deletion.partition_index, low_watermark=NO_WATERMARK, error_code=error
    )
