"""Handles the fetch response for one partition: records, a new leader, a preferred replica, a reset, a failure.

Laws
    A response is used only if the position has not changed since the request.
    A new leader is followed without an error. A position that is not in the log is reset by auto_offset_reset; with
    `none` OffsetOutOfRange is raised.
    A truncation of the log below the position is detected by the leader epoch of the last record (KIP-320, KIP-595):
    the leader returns the divergence offset, and records that replaced others are never skipped.
"""

from __future__ import annotations

from rota.client.config import ConsumerConfig
from rota.client.consumer.completed_fetch import CompletedFetch
from rota.client.consumer.fetch_buffer import FetchBuffer
from rota.client.consumer.fetch_session import FetchPartition, LogEnds
from rota.client.consumer.pauses import Pauses
from rota.client.consumer.positions import Position, Positions
from rota.client.consumer.sources import Sources
from rota.client.errors import GRANT_READ_ON_TOPIC, BrokerError, CorruptRecords, LogTruncated, OffsetOutOfRange
from rota.client.log import logger
from rota.client.network.cluster import Cluster
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, FetchRequest, PartitionData
from rota.protocol.wire import UUID_ZERO

_log = logger("rota.client.fetcher")


class PartitionResults:
    """`apply` a partition's response. Of `cluster` only the metadata are used."""

    def __init__(
        self,
        config: ConsumerConfig,
        positions: Positions,
        buffer: FetchBuffer,
        sources: Sources,
        pauses: Pauses,
        cluster: Cluster,
    ) -> None:
        self._config, self._positions, self._buffer = config, positions, buffer
        self._sources, self._pauses, self._cluster = sources, pauses, cluster
        self._reads_committed = config.isolation_level == "read_committed"

    def apply(
        self,
        node: int,
        partition: TopicPartition,
        requested: FetchPartition,
        data: PartitionData,
        answer: int,
        now_ms: int,
    ) -> None:
        """`requested`: the request that this answers; `answer`: the number of the whole FetchResponse."""
        position = self._positions.find(partition)
        if position is None or position.position_epoch != requested.position_epoch:
            return
        place = self._buffer.next_fetch(partition, position)
        if place is None or place.offset != requested.offset:
            return
        if (data.error_code or data.diverging_epoch is not None) and self._buffer.keep_for_user(partition):
            return  # it is fetched again from the position itself
        if data.error_code:
            self._refused(node, partition, requested, position, data, now_ms)
            return
        self._pauses.succeeded(partition)
        _set_offsets(position, data)
        if data.preferred_read_replica >= 0:
            _log.info("reads from a closer replica", partition=str(partition), broker=data.preferred_read_replica)
            self._sources.set_preferred_replica(partition, data.preferred_read_replica, now_ms)
        if data.diverging_epoch is not None and data.diverging_epoch.end_offset >= 0:
            self._truncated(partition, requested, data.diverging_epoch)
        elif data.records:
            self._buffer.put(self._completed(node, partition, requested, data, answer))

    def unchanged(self, partition: TopicPartition, requested: FetchPartition, ends: LogEnds) -> None:
        """Handle a response that omits the partition: its position may be newer than the last one that had it."""
        position = self._positions.find(partition)
        if position is not None and position.position_epoch == requested.position_epoch:
            _set_offsets(position, ends)

    def _completed(
        self, node: int, partition: TopicPartition, requested: FetchPartition, data: PartitionData, answer: int
    ) -> CompletedFetch:
        return CompletedFetch(
            partition,
            requested.offset,
            data.records or b"",
            aborted=(data.aborted_transactions or ()) if self._reads_committed else None,
            check_crcs=self._config.check_crcs,
            node=node,
            answer=answer,
            position_epoch=requested.position_epoch,
        )

    def _refused(
        self,
        node: int,
        partition: TopicPartition,
        requested: FetchPartition,
        position: Position,
        data: PartitionData,
        now_ms: int,
    ) -> None:
        code = ErrorCode.of(data.error_code)
        _log.info(
            "a fetch was refused", partition=str(partition), broker=node, error=code.name, offset=requested.offset
        )
        action = error_action(FetchRequest.KEY, data.error_code)
        was_replica = self._sources.forget_replica(partition)
        if action is ErrorAction.RESET:
            if not was_replica:
                self._out_of_range(partition, requested, position)
        elif code is ErrorCode.CORRUPT_MESSAGE:
            place = f"{partition} at offset {requested.offset}"
            message = f"{place}: broker {node} says that the records are corrupt; seek past them"
            self._buffer.fail(partition, CorruptRecords(message, partition, requested.offset), requested.position_epoch)
        elif action is ErrorAction.FATAL and code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            message = f"fetching at offset {requested.offset}"
            error = BrokerError(
                data.error_code,
                message,
                topic=partition.topic,
                partition=partition.partition,
                broker=str(node),
                remedy=GRANT_READ_ON_TOPIC if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED else "",
            )
            self._buffer.fail(partition, error, requested.position_epoch)
        else:
            self._follow_leader(partition, requested, data, now_ms)

    def _follow_leader(
        self, partition: TopicPartition, requested: FetchPartition, data: PartitionData, now_ms: int
    ) -> None:
        leader, topic_id = data.current_leader, requested.topic_id
        if topic_id not in (UUID_ZERO, self._cluster.metadata.topic_id(partition.topic)):
            leader = None  # of a deleted topic of this name
        is_newer = leader is not None and leader.leader_epoch > requested.leader_epoch
        if leader is not None and is_newer and leader.leader_id in self._cluster.metadata.brokers:
            self._sources.set_leader(partition, leader.leader_id, leader.leader_epoch, topic_id)
        else:
            self._pauses.failed(partition, now_ms)
        self._cluster.request_refresh()

    def _out_of_range(self, partition: TopicPartition, requested: FetchPartition, position: Position) -> None:
        if position.leader_epoch >= 0:
            position.leader_epoch = -1  # the leader may only not know the epoch: fetch without it
            return
        policy = self._config.auto_offset_reset
        if policy != "none":
            _log.info("resets a position out of range", partition=str(partition), offset=requested.offset, to=policy)
            self._positions.reset(partition, policy)
            return
        message = (
            f"offset {requested.offset} of {partition} is not in its log, which is known to begin at "
            f"{_known(position.log_start)} and to end at {_known(position.high_watermark)}; auto_offset_reset is none: "
            "seek, or choose earliest or latest"
        )
        self._buffer.fail(partition, OffsetOutOfRange(message, {partition: requested.offset}), requested.position_epoch)

    def _truncated(self, partition: TopicPartition, requested: FetchPartition, diverging: EpochEndOffset) -> None:
        offset = min(diverging.end_offset, requested.offset)
        if self._config.auto_offset_reset != "none":
            _log.warning("a log was truncated", partition=str(partition), offset=requested.offset, goes_on_at=offset)
            self._positions.seek(partition, offset, diverging.epoch)
            return
        message = (
            f"the log of {partition} was truncated: what was read from offset {offset} to {requested.offset} has been "
            f"replaced (auto_offset_reset is none); to go on, seek to {offset}"
        )
        self._buffer.fail(partition, LogTruncated(message, {partition: offset}), requested.position_epoch)


def _set_offsets(position: Position, data: PartitionData | LogEnds) -> None:
    """Store the offsets of the log from the response; -1 is unknown."""
    if data.high_watermark >= 0:
        position.high_watermark = data.high_watermark
    if data.last_stable_offset >= 0:
        position.last_stable_offset = data.last_stable_offset
    if data.log_start_offset >= 0:
        position.log_start = data.log_start_offset


def _known(offset: int | None) -> str:
    return "an unknown offset" if offset is None else str(offset)
