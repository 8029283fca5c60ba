"""Asks a leader where its logs start and end (ListOffsets), for a follower whose offset it does not have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rota.coordinator.replica.partition import Partition
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rota.transport.connection import Connection

LATEST: Final = -1
EARLIEST: Final = -2

Bounds = tuple[int, int] | ErrorCode  # log start and log end


async def leader_bounds(
    connection: Connection, partitions: Sequence[Partition], replica_id: int, seconds: float
) -> list[Bounds]:
    """Return the bounds of each partition at its leader, or the error of it. Raises KafkaError."""
    starts, ends = [
        _offsets(await connection.send_request(_request(partitions, timestamp, replica_id), seconds))
        for timestamp in (EARLIEST, LATEST)
    ]
    return [
        _bounds(starts[partition.topic, partition.index], ends[partition.topic, partition.index])
        for partition in partitions
    ]


def _request(partitions: Sequence[Partition], timestamp: int, replica_id: int) -> ListOffsetsRequest:
    by_topic = sorted(partitions, key=lambda partition: partition.topic)
    topics = tuple(
        ListOffsetsTopic(name=name, partitions=tuple(_of(partition, timestamp) for partition in group))
        for name, group in groupby(by_topic, key=lambda partition: partition.topic)
    )
    return ListOffsetsRequest(replica_id=replica_id, topics=topics)


def _of(partition: Partition, timestamp: int) -> ListOffsetsPartition:
    return ListOffsetsPartition(
        partition_index=partition.index, current_leader_epoch=partition.leader_epoch, timestamp=timestamp
    )


def _offsets(response: ListOffsetsResponse) -> dict[tuple[str, int], int | ErrorCode]:
    return {
        (topic.name, partition.partition_index): ErrorCode.of(partition.error_code)
        if partition.error_code
        else partition.offset
        for topic in response.topics
        for partition in topic.partitions
    }


def _bounds(start: int | ErrorCode, end: int | ErrorCode) -> Bounds:
    if isinstance(start, ErrorCode):
        return start
    return end if isinstance(end, ErrorCode) else (start, end)
