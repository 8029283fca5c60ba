"""DescribeLogDirs, key 35, versions 1-5.

v1 as v0 · v2 flexible · v3 error code for the whole response · v4 sizes of the volume (KIP-827)
v5 cordoned directories (KIP-1066)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int16, Int32, Int64, String, wire, wired


@wired
class DescribableLogDirTopic:
    topic: str = wire(String)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class DescribeLogDirsRequest:
    """Ask for the sizes of partitions on disk. `topics` None: all topics."""

    KEY, VERSIONS, FLEXIBLE = 35, range(1, 6), 2

    topics: tuple[DescribableLogDirTopic, ...] | None = wire(Array(DescribableLogDirTopic), nullable_since=0)


@wired
class DescribeLogDirsPartition:
    partition_index: int = wire(Int32)
    partition_size: int = wire(Int64)
    offset_lag: int = wire(Int64, default=0)
    is_future_key: bool = wire(Bool, default=False)


@wired
class DescribeLogDirsTopic:
    name: str = wire(String)
    partitions: tuple[DescribeLogDirsPartition, ...] = wire(Array(DescribeLogDirsPartition), default=())


@wired
class DescribeLogDirsResult:
    error_code: int = wire(Int16, default=0)
    log_dir: str = wire(String)
    topics: tuple[DescribeLogDirsTopic, ...] = wire(Array(DescribeLogDirsTopic), default=())
    total_bytes: int = wire(Int64, since=4, default=-1)
    usable_bytes: int = wire(Int64, since=4, default=-1)
    is_cordoned: bool = wire(Bool, since=5, default=False)


@wired
class DescribeLogDirsResponse:
    """One result for each log directory."""

    KEY, VERSIONS, FLEXIBLE = 35, range(1, 6), 2

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, since=3, default=0)
    results: tuple[DescribeLogDirsResult, ...] = wire(Array(DescribeLogDirsResult), default=())
