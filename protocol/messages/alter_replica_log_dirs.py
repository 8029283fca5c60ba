"""AlterReplicaLogDirs, key 34, versions 1-2.

v1 move a replica to another log directory of its broker (KIP-113) · v2 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, String, wire, wired


@wired
class AlterReplicaLogDirTopic:
    name: str = wire(String)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class AlterReplicaLogDir:
    path: str = wire(String)
    topics: tuple[AlterReplicaLogDirTopic, ...] = wire(Array(AlterReplicaLogDirTopic), default=())


@wired
class AlterReplicaLogDirsRequest:
    """Move replicas to a log directory."""

    KEY, VERSIONS, FLEXIBLE = 34, range(1, 3), 2

    dirs: tuple[AlterReplicaLogDir, ...] = wire(Array(AlterReplicaLogDir), default=())


@wired
class AlterReplicaLogDirPartitionResult:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)


@wired
class AlterReplicaLogDirTopicResult:
    topic_name: str = wire(String)
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = wire(
        Array(AlterReplicaLogDirPartitionResult), default=()
    )


@wired
class AlterReplicaLogDirsResponse:
    """One result for each partition."""

    KEY, VERSIONS, FLEXIBLE = 34, range(1, 3), 2

    throttle_time_ms: int = wire(Int32, default=0)
    results: tuple[AlterReplicaLogDirTopicResult, ...] = wire(Array(AlterReplicaLogDirTopicResult), default=())
