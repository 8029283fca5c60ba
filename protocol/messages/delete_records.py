"""DeleteRecords, key 21, versions 0-2.

v1 as v0 · v2 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, Int64, String, wire, wired


@wired
class DeleteRecordsPartition:
    """`offset` -1: up to the high watermark."""

    partition_index: int = wire(Int32)
    offset: int = wire(Int64)


@wired
class DeleteRecordsTopic:
    name: str = wire(String)
    partitions: tuple[DeleteRecordsPartition, ...] = wire(Array(DeleteRecordsPartition), default=())


@wired
class DeleteRecordsRequest:
    """Advance the log start offsets of partitions (KIP-107)."""

    KEY, VERSIONS, FLEXIBLE = 21, range(3), 2

    topics: tuple[DeleteRecordsTopic, ...] = wire(Array(DeleteRecordsTopic), default=())
    timeout_ms: int = wire(Int32)


@wired
class DeleteRecordsPartitionResult:
    partition_index: int = wire(Int32)
    low_watermark: int = wire(Int64, default=-1)
    error_code: int = wire(Int16, default=0)


@wired
class DeleteRecordsTopicResult:
    name: str = wire(String)
    partitions: tuple[DeleteRecordsPartitionResult, ...] = wire(Array(DeleteRecordsPartitionResult), default=())


@wired
class DeleteRecordsResponse:
    """The new log start offset of each partition, `low_watermark`."""

    KEY, VERSIONS, FLEXIBLE = 21, range(3), 2

    throttle_time_ms: int = wire(Int32, default=0)
    topics: tuple[DeleteRecordsTopicResult, ...] = wire(Array(DeleteRecordsTopicResult), default=())
