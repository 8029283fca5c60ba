"""WriteTxnMarkers, key 27, versions 1-2: transaction coordinators send it to the leaders of a transaction's partitions.

v1 flexible · v2 transaction version (KIP-1228)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.group_coordinator import OFFSETS_TOPIC
from rota.coordinator.log.contract import Appended, AppendRefused, StorageFailed
from rota.coordinator.replica.partition import Partition
from rota.coordinator.replica.partition_lookup import PartitionLookup
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from rota.protocol.records.control import Marker

COMMIT_TIMEOUT_MS: Final = 30_000  # for the high watermark to reach a marker; the sender retries
EPOCH_BUMP_SINCE: Final = 2  # the transaction version with a new producer epoch at each end of a transaction


def write_txn_markers(
    node: Node, call: Call, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | DelayedReply[WriteTxnMarkersResponse]:
    """Append the markers to the partitions that this broker leads. Delayed until they are committed."""
    return write_markers(node, request)


def write_markers(
    node: Node, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | DelayedReply[WriteTxnMarkersResponse]:
    """As `write_txn_markers`, also for the transaction coordinator of this broker."""
    operation = _MarkerWriting(node)
    response = WriteTxnMarkersResponse(markers=tuple(map(operation.write, request.markers)))
    return operation.reply(response)


class _MarkerWriting:
    """Appends markers and counts the partitions in which they are not committed yet."""

    __slots__ = ("_node", "_partition_lookup", "_pending", "_reply", "_response")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._partition_lookup = PartitionLookup(node.topics, node.partitions)
        self._pending = 0
        self._response: WriteTxnMarkersResponse | None = None
        self._reply: DelayedReply[WriteTxnMarkersResponse] | None = None

    def reply(
        self, response: WriteTxnMarkersResponse
    ) -> WriteTxnMarkersResponse | DelayedReply[WriteTxnMarkersResponse]:
        """Return the response, or a reply that is given when all markers of it are committed or have failed."""
        if not self._pending:
            return response
        self._response, self._reply = response, DelayedReply()
        return self._reply

    def write(self, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
        return WritableTxnMarkerResult(
            producer_id=marker.producer_id,
            topics=tuple(
                WritableTxnMarkerTopicResult(
                    name=topic.name,
                    partitions=tuple(self._partition(marker, topic.name, index) for index in topic.partition_indexes),
                )
                for topic in marker.topics
            ),
        )

    def _partition(self, marker: WritableTxnMarker, name: str, index: int) -> WritableTxnMarkerPartitionResult:
        result = WritableTxnMarkerPartitionResult(partition_index=index)
        error = self._append(marker, name, index, result)
        if error is not ErrorCode.NONE:
            result.error_code = error
        return result

    def _append(
        self, marker: WritableTxnMarker, name: str, index: int, result: WritableTxnMarkerPartitionResult
    ) -> ErrorCode:
        """Append the marker to one partition. `result` gets the error that follows a wait."""
        partition = self._partition_lookup.find((name, index))
        if partition is None:
            return self._partition_lookup.missing((name, index))
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # as Kafka; a replay of the log would know no such producer
        if partition.is_leader and not partition.state.has_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        write = partial(
            partition.append_marker,
            Marker(marker.transaction_result, marker.coordinator_epoch),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            now_ms=self._node.wall_ms(),
            is_v2=marker.transaction_version >= EPOCH_BUMP_SINCE,
        )
        try:
            end = self._end_in_groups(marker, index, write) if name == OFFSETS_TOPIC else write().last_offset + 1
        except AppendRefused as refusal:
            return refusal.code
        except StorageFailed:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if end is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # transaction coordinators know no code of group coordinators
        self._await(partition, end, result)
        return ErrorCode.NONE

    def _end_in_groups(self, marker: WritableTxnMarker, index: int, write: Callable[[], Appended]) -> int | None:
        """Write the marker and end the transaction in the groups of an offsets partition. None: they are not loaded."""
        return self._node.groups.write_marker(index, marker.producer_id, write, is_commit=marker.transaction_result)

    def _await(self, partition: Partition, offset: int, result: WritableTxnMarkerPartitionResult) -> None:
        """Wait until the marker is committed; then `result` has the error code."""

        def done(error: ErrorCode) -> None:
            result.error_code = error
            self._committed()

        self._pending += 1
        partition.when_committed(offset, self._node.now_ms() + COMMIT_TIMEOUT_MS, done)

    def _committed(self) -> None:
        self._pending -= 1
        if not self._pending and self._reply is not None and self._response is not None:
            self._reply.answer(self._response)
