"""AlterReplicaLogDirs, key 34, versions 1-2.

v1 a replica in another directory of its broker (KIP-113) · v2 flexible

All partitions are in the first of `log.dirs`: any other target directory is refused.
"""

from __future__ import annotations

import os

from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def alter_replica_log_dirs(node: Node, call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Return one result for each partition; the last entry wins when a partition is named twice, as in Kafka."""
    here = os.path.abspath(node.config.log_dirs[0])
    paths = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (name, index), path in paths.items():
        code = _outcome(node, name, index, path == here)
        results.setdefault(name, []).append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))
            for name, partitions in results.items()
        )
    )


def _outcome(node: Node, name: str, index: int, is_here: bool) -> ErrorCode:
    if not is_here:
        return ErrorCode.LOG_DIR_NOT_FOUND
    partition = node.partitions.get(name, index)
    if partition is not None:
        return partition.error
    is_known = node.topics.partition(name, index) is not None
    return ErrorCode.REPLICA_NOT_AVAILABLE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
