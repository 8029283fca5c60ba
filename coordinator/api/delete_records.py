"""DeleteRecords, key 21, versions 0-2.

v2 flexible. Moves the log start offset forward (KIP-107). The start moves at once; a thread writes it to the medium,
and then the response waits until the logs of the followers start there, too, for `timeout_ms` at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.log.contract import Log, StorageFailed
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import INTERNAL
from rota.coordinator.replica.delayed_deletion import DelayedDeletion
from rota.coordinator.replica.leader_epochs import NO_EPOCH, fence_leader
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partition_lookup import PartitionLookup
from rota.coordinator.scheduling.delayed_reply import DelayedReply, gather
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
    """The records before `offset` are deleted: the log starts at `start`. `write`, called in a thread, writes that."""

    index: int
    offset: int
    start: int
    write: _Write | None
    partition: Partition
    log: Log


_Entry = DeleteRecordsPartitionResult | _Deletion
_Result = DeleteRecordsPartitionResult | DelayedReply[DeleteRecordsPartitionResult]
_Failures = Mapping[_Write | None, StorageFailed]


def delete_records(
    node: Node, call: Call, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | DelayedReply[DeleteRecordsResponse]:
    """Delete the records before each offset (-1: the high watermark). Returns the new start of each log."""
    partition_lookup = PartitionLookup(node.topics, node.partitions)
    entries = [
        _delete(partition_lookup, topic.name, requested) for topic in request.topics for requested in topic.partitions
    ]
    writes = dict.fromkeys(entry.write for entry in entries if isinstance(entry, _Deletion) and entry.write)
    respond = partial(_respond, node, request, entries, node.now_ms() + request.timeout_ms)
    if not writes:
        return respond({})
    reply: DelayedReply[DeleteRecordsResponse] = DelayedReply(mutes=True)

    def written(response: DeleteRecordsResponse | DelayedReply[DeleteRecordsResponse]) -> None:
        if isinstance(response, DelayedReply):
            response.then(reply.answer)
        else:
            reply.answer(response)

    eager_tasks.start(_write(writes)).map(respond).then(written)  # G4: a mistake is the reply, too
    return reply


async def _write(writes: Iterable[_Write]) -> _Failures:
    """Each of `writes` writes one checkpoint, for all the logs whose starts it holds."""
    failures: dict[_Write | None, StorageFailed] = {}
    for write in writes:
        try:
            await asyncio.to_thread(write)
        except StorageFailed as error:
            failures[write] = error
    return failures


def _respond(
    node: Node, request: DeleteRecordsRequest, entries: list[_Entry], deadline_ms: int, failures: _Failures
) -> DeleteRecordsResponse | DelayedReply[DeleteRecordsResponse]:
    """`entries` are in the order of the request."""
    results = [_result(node, entry, failures, deadline_ms) for entry in entries]

    def response(known: list[DeleteRecordsPartitionResult]) -> DeleteRecordsResponse:
        left = iter(known)
        return DeleteRecordsResponse(
            topics=tuple(
                DeleteRecordsTopicResult(name=topic.name, partitions=tuple(next(left) for _ in topic.partitions))
                for topic in request.topics
            )
        )

    return gather(results, response)


def _result(node: Node, entry: _Entry, failures: _Failures, deadline_ms: int) -> _Result:
    """A start that could not be written takes its partition offline."""
    if isinstance(entry, DeleteRecordsPartitionResult):
        return entry
    failure = failures.get(entry.write)
    if failure is not None:
        entry.partition.log_failed(entry.log, str(failure))
        return _refused(entry.index, ErrorCode.KAFKA_STORAGE_ERROR)
    error = entry.partition.deletion_error(entry.offset, node.topics.brokers)
    if error is not None:
        return _deleted(node, entry, error)
    deletion = DelayedDeletion(entry.partition, entry.offset, lambda: node.topics.brokers, node.timers, deadline_ms)
    return deletion.reply.map(partial(_deleted, node, entry))


def _deleted(node: Node, entry: _Deletion, error: ErrorCode) -> DeleteRecordsPartitionResult:
    """The result has the low watermark, also of a deletion that not all followers have heard of in time."""
    if error not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
        return _refused(entry.index, error)
    low_watermark = min(entry.start, entry.partition.state.low_watermark(node.topics.brokers))
    return DeleteRecordsPartitionResult(partition_index=entry.index, low_watermark=low_watermark, error_code=error)


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
    return _Deletion(index, upto, partition.log_start_offset, write, partition, partition.log)


def _forbidden(partition: Partition) -> ErrorCode:
    """Records of internal topics and of topics that are only compacted can not be deleted."""
    if partition.topic in INTERNAL:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.NONE if partition.log.config.delete else ErrorCode.POLICY_VIOLATION


def _refused(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_WATERMARK, error_code=error)
