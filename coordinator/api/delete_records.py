"""DeleteRecords, key 21, versions 0-2.

v2 flexible. Moves the log start offset forward (KIP-107). There are no followers to wait for: `timeout_ms` is unused.
The start moves at once; the response leaves when it is on the medium, and a thread writes it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.log.contract import Log, StorageFailed
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import INTERNAL
from rota.coordinator.replica.leader_epochs import NO_EPOCH, fence_leader
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partition_lookup import PartitionLookup
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.dataclass import dataclass
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


_Write = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Deletion:
    """One entry of the response. `write`, called in a thread, writes the log start of `log` to the medium."""

    result: DeleteRecordsPartitionResult
    write: _Write
    partition: Partition
    log: Log


_Entry = DeleteRecordsPartitionResult | _Deletion
_Topics = Sequence[tuple[str, Sequence[_Entry]]]


def delete_records(
    node: Node, call: Call, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | DelayedReply[DeleteRecordsResponse]:
    """Delete the records before each offset (-1: the high watermark). Returns the new start of each log."""
    partition_lookup = PartitionLookup(node.topics, node.partitions)
    topics = [
        (topic.name, [_delete(partition_lookup, topic.name, requested) for requested in topic.partitions])
        for topic in request.topics
    ]
    writes = dict.fromkeys(entry.write for _, entries in topics for entry in entries if isinstance(entry, _Deletion))
    return eager_tasks.start(_write_and_respond(topics, writes)) if writes else _response(topics, {})


async def _write_and_respond(topics: _Topics, writes: Iterable[_Write]) -> DeleteRecordsResponse:
    """Each of `writes` writes one checkpoint, for all the logs whose starts it holds."""
    failures: dict[_Write, StorageFailed] = {}
    for write in writes:
        try:
            await asyncio.to_thread(write)
        except StorageFailed as error:
            failures[write] = error
    return _response(topics, failures)


def _response(topics: _Topics, failures: Mapping[_Write, StorageFailed]) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(name=name, partitions=tuple(_result(entry, failures) for entry in entries))
            for name, entries in topics
        )
    )


def _result(entry: _Entry, failures: Mapping[_Write, StorageFailed]) -> DeleteRecordsPartitionResult:
    """A start that could not be written takes its partition offline."""
    if isinstance(entry, DeleteRecordsPartitionResult):
        return entry
    failure = failures.get(entry.write)
    if failure is None:
        return entry.result
    entry.partition.log_failed(entry.log, str(failure))
    return _refused(entry.result.partition_index, ErrorCode.KAFKA_STORAGE_ERROR)


def _delete(partition_lookup: PartitionLookup, name: str, requested: DeleteRecordsPartition) -> _Entry:
    index = requested.partition_index
    partition = partition_lookup.find((name, index))
    if partition is None:
        return _refused(index, partition_lookup.missing((name, index)))
    try:
        error = fence_leader(partition, NO_EPOCH) or _forbidden(partition)
        if error is not ErrorCode.NONE:
            return _refused(index, error)
        upto = partition.high_watermark if requested.offset == HIGH_WATERMARK else requested.offset
        if not 0 <= upto <= partition.high_watermark:
            return _refused(index, ErrorCode.OFFSET_OUT_OF_RANGE)
        write = partition.begin_delete_before(upto)
    except StorageFailed:
        return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=partition.log_start_offset)
    return result if write is None else _Deletion(result, write, partition, partition.log)


def _forbidden(partition: Partition) -> ErrorCode:
    """Records of internal topics and of topics that are only compacted can not be deleted."""
    if partition.topic in INTERNAL:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.NONE if partition.log.config.delete else ErrorCode.POLICY_VIOLATION


def _refused(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_WATERMARK, error_code=error)
