"""What the answer for one partition means: records, another leader, a nearer replica, another position, a failure.

Laws
    Only the answer for the position as it stands now counts.
    A leader that moved is followed quietly; a position that is not in the log is reset by policy, or told to the user
    when the policy is none.
    A log that was truncated below the position is noticed by the epoch of the record before it (KIP-320, KIP-595): the
    leader says where it parted, and nothing that replaced what was read is passed over silently.
"""

from __future__ import annotations

from rota.client.config import ConsumerConfig
from rota.client.consumer.completed_fetch import CompletedFetch
from rota.client.consumer.fetch_buffer import FetchBuffer
from rota.client.consumer.fetch_session import Want
from rota.client.consumer.pauses import Pauses
from rota.client.consumer.positions import Position, Positions
from rota.client.consumer.sources import Sources
from rota.client.errors import BrokerError, CorruptRecords, LogTruncated, OffsetOutOfRange
from rota.client.log import logger
from rota.client.network.cluster import Cluster
from rota.client.network.error_actions import ErrorAction, error_action
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.fetch import EpochEndOffset, FetchRequest, PartitionData

_log = logger("rota.client.fetcher")


class PartitionResults:
    """`cluster` is asked for nothing but metadata."""

    def __init__(
        self,
        config: ConsumerConfig,
        positions: Positions,
        arrived: FetchBuffer,
        sources: Sources,
        pauses: Pauses,
        cluster: Cluster,
    ) -> None:
        self._config, self._positions, self._buffer = config, positions, arrived
        self._sources, self._pauses, self._cluster = sources, pauses, cluster
        self._hides = config.isolation_level == "read_committed"

    def apply(
        self, node: int, partition: TopicPartition, want: Want, data: PartitionData, answer: int, now_ms: int
    ) -> None:
        """`want` is what the answer is to; `answer` numbers the whole answer."""
        position = self._positions.find(partition)
        if position is None or position.position_epoch != want.position_epoch:
            return
        place = self._buffer.ahead(partition, position)
        if place is None or place.offset != want.offset:
            return
        if (data.error_code or data.diverging_epoch is not None) and self._buffer.stays(partition):
            return  # it will be asked again from the position itself
        if data.error_code:
            self._refused(node, partition, want, position, data, now_ms)
            return
        self._pauses.worked(partition)
        if data.high_watermark >= 0:
            position.high_watermark = data.high_watermark
        if data.last_stable_offset >= 0:
            position.last_stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            position.log_start = data.log_start_offset
        if data.preferred_read_replica >= 0:
            _log.info("reads from a replica near by", partition=str(partition), broker=data.preferred_read_replica)
            self._sources.prefers(partition, data.preferred_read_replica, now_ms)
        if data.diverging_epoch is not None and data.diverging_epoch.end_offset >= 0:
            self._truncated(partition, want, data.diverging_epoch)
        elif data.records:
            self._buffer.put(
                CompletedFetch(
                    partition,
                    want.offset,
                    data.records,
                    aborted=(data.aborted_transactions or ()) if self._hides else None,
                    check_crcs=self._config.check_crcs,
                    node=node,
                    answer=answer,
                    position_epoch=want.position_epoch,
                )
            )

    def _refused(
        self, node: int, partition: TopicPartition, want: Want, position: Position, data: PartitionData, now_ms: int
    ) -> None:
        code = ErrorCode.of(data.error_code)
        _log.info("a fetch was refused", partition=str(partition), broker=node, error=code.name, offset=want.offset)
        found = error_action(FetchRequest.KEY, data.error_code)
        was_near = self._sources.give_up(partition)
        if found is ErrorAction.RESET:
            if not was_near:
                self._out_of_range(partition, want, position)
        elif code is ErrorCode.CORRUPT_MESSAGE:
            told = (
                f"{partition} at offset {want.offset}: broker {node} says that the records are corrupt; seek past them"
            )
            self._buffer.fail(partition, CorruptRecords(told, partition, want.offset), want.position_epoch)
        elif found is ErrorAction.FATAL and code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            told = f"fetching at offset {want.offset}"
            error = BrokerError(
                data.error_code, told, topic=partition.topic, partition=partition.partition, broker=str(node)
            )
            self._buffer.fail(partition, error, want.position_epoch)
        else:
            self._elsewhere(partition, want, data, now_ms)

    def _elsewhere(self, partition: TopicPartition, want: Want, data: PartitionData, now_ms: int) -> None:
        leader = data.current_leader
        is_news = leader is not None and leader.leader_epoch > want.leader_epoch
        if leader is not None and is_news and leader.leader_id in self._cluster.metadata.brokers:
            self._sources.leads(partition, leader.leader_id, leader.leader_epoch)
        else:
            self._pauses.failed(partition, now_ms)
        self._cluster.request_refresh()

    def _out_of_range(self, partition: TopicPartition, want: Want, position: Position) -> None:
        if position.leader_epoch >= 0:
            position.leader_epoch = -1  # perhaps it is only the epoch that the leader knows nothing of: ask without it
            return
        policy = self._config.auto_offset_reset
        if policy != "none":
            _log.info("resets a position out of range", partition=str(partition), offset=want.offset, to=policy)
            self._positions.reset(partition, policy)
            return
        told = (
            f"offset {want.offset} of {partition} is not in its log, which is known to begin at "
            f"{_known(position.log_start)} and to end at {_known(position.high_watermark)}; auto_offset_reset is none: "
            "seek, or choose earliest or latest"
        )
        self._buffer.fail(partition, OffsetOutOfRange(told, {partition: want.offset}), want.position_epoch)

    def _truncated(self, partition: TopicPartition, want: Want, diverging: EpochEndOffset) -> None:
        offset = min(diverging.end_offset, want.offset)
        if self._config.auto_offset_reset != "none":
            _log.warning("a log was truncated", partition=str(partition), offset=want.offset, goes_on_at=offset)
            self._positions.seek(partition, offset, diverging.epoch)
            return
        told = (
            f"the log of {partition} was truncated: what was read from offset {offset} to {want.offset} has been "
            f"replaced (auto_offset_reset is none); to go on, seek to {offset}"
        )
        self._buffer.fail(partition, LogTruncated(told, {partition: offset}), want.position_epoch)


def _known(offset: int | None) -> str:
    return "an unknown offset" if offset is None else str(offset)
