"""DescribeLogDirs, key 35, versions 1-5.

v2 flexible · v3 error code · v4 size of the volume (KIP-827) · v5 cordoned directories

All partitions live in the first of `log.dirs`. A broker that keeps everything in memory has no volume: sizes -1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.replica.partition import Partition
from rota.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN: Final = -1


def describe_log_dirs(node: Node, call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Return the size of each requested partition of this broker, or of all; others are left out."""
    directory = os.path.abspath(node.config.log_dirs[0])
    total_bytes, usable_bytes = _volume(directory)
    result = DescribeLogDirsResult(
        log_dir=directory,
        topics=tuple(_topics(_requested(node, request))),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
    return DescribeLogDirsResponse(results=(result,))


def _volume(directory: str) -> tuple[int, int]:
    """Return (total bytes, usable bytes) of the volume; UNKNOWN for both when everything is in memory."""
    try:
        volume = os.statvfs(directory)
    except OSError:
        return UNKNOWN, UNKNOWN
    return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize


def _requested(node: Node, request: DescribeLogDirsRequest) -> Iterable[Partition]:
    if request.topics is None:
        return node.partitions.all()
    keys = {(topic.topic, index): None for topic in request.topics for index in topic.partitions}
    return [partition for key in keys if (partition := node.partitions.get(*key)) is not None]


def _topics(partitions: Iterable[Partition]) -> Iterator[DescribeLogDirsTopic]:
    ordered = sorted(partitions, key=lambda partition: (partition.topic, partition.index))
    for topic, group in groupby(ordered, key=lambda partition: partition.topic):
        entries = tuple(_entry(partition) for partition in group if partition.offline is None)
        if entries:
            yield DescribeLogDirsTopic(name=topic, partitions=entries)


def _entry(partition: Partition) -> DescribeLogDirsPartition:
    log = partition.log
    return DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=log.size_bytes,
        offset_lag=max(log.log_end_offset - partition.high_watermark, 0),
        is_future_key=False,
    )
