"""DeleteRecords, key 21, versions 0-2.

v2 flexible. Moves the start of logs up (KIP-107). With one replica there is nobody to wait for: `timeout_ms` is unused.
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
    """Forget the records before each offset (-1: all of them). Answers where each log begins now."""
    partition_lookup = PartitionLookup(node.topics, node.partitions)
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(_delete(partition_lookup, topic.name, one) for one in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _delete(partition_lookup: PartitionLookup, name: str, one: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    partition = partition_lookup.find((name, one.partition_index))
    if partition is None:
        return _refused(one, partition_lookup.missing((name, one.partition_index)))
    try:
        error = _forbidden(partition)
        if error is not ErrorCode.NONE:
            return _refused(one, error)
        upto = partition.high_watermark if one.offset == HIGH_WATERMARK else one.offset
        if not 0 <= upto <= partition.high_watermark:
            return _refused(one, ErrorCode.OFFSET_OUT_OF_RANGE)
        if upto > partition.log_start_offset:
            partition.log.delete_before(upto)
        start = partition.log_start_offset
    except StorageFailed as failure:
        partition.fail(str(failure))
        return _refused(one, ErrorCode.KAFKA_STORAGE_ERROR)
    return DeleteRecordsPartitionResult(partition_index=one.partition_index, low_watermark=start)


def _forbidden(partition: Partition) -> ErrorCode:
    """A log that is only compacted keeps what it has; internal topics are ours."""
    if partition.topic in INTERNAL:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.NONE if partition.log.config.delete else ErrorCode.POLICY_VIOLATION


def _refused(one: DeleteRecordsPartition, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=one.partition_index, low_watermark=NO_WATERMARK, error_code=error
    )
