"""ListOffsets, key 2, versions 1-11.

v1 one offset instead of several · v2 isolation level, throttle time · v4 leader epoch (KIP-320) · v6 flexible
v7 max timestamp, -3 (KIP-734) · v8 earliest local, -4 (KIP-405) · v9 latest tiered, -5 (KIP-1005)
v10 timeout (KIP-1075) · v11 earliest pending upload, -6 (KIP-1023)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int8, Int16, Int32, Int64, String, wire, wired


@wired
class ListOffsetsPartition:
    partition_index: int = wire(Int32)
    current_leader_epoch: int = wire(Int32, since=4, default=-1)
    timestamp: int = wire(Int64)


@wired
class ListOffsetsTopic:
    name: str = wire(String)
    partitions: tuple[ListOffsetsPartition, ...] = wire(Array(ListOffsetsPartition), default=())


@wired
class ListOffsetsRequest:
    """Ask for the first offset at or after a time, or for the end (-1), the start (-2), the largest timestamp (-3)."""

    KEY, VERSIONS, FLEXIBLE = 2, range(1, 12), 6

    replica_id: int = wire(Int32, default=-1)
    isolation_level: int = wire(Int8, since=2, default=0)
    topics: tuple[ListOffsetsTopic, ...] = wire(Array(ListOffsetsTopic), default=())
    timeout_ms: int = wire(Int32, since=10, default=0)


@wired
class ListOffsetsPartitionResponse:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)
    timestamp: int = wire(Int64, default=-1)
    offset: int = wire(Int64, default=-1)
    leader_epoch: int = wire(Int32, since=4, default=-1)


@wired
class ListOffsetsTopicResponse:
    name: str = wire(String)
    partitions: tuple[ListOffsetsPartitionResponse, ...] = wire(Array(ListOffsetsPartitionResponse), default=())


@wired
class ListOffsetsResponse:
    """Offset and timestamp are -1 when there is no such record."""

    KEY, VERSIONS, FLEXIBLE = 2, range(1, 12), 6

    throttle_time_ms: int = wire(Int32, since=2, default=0)
    topics: tuple[ListOffsetsTopicResponse, ...] = wire(Array(ListOffsetsTopicResponse), default=())
