"""OffsetForLeaderEpoch, key 23, versions 2-4.

v3 replica id · v4 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, Int64, String, wire, wired


@wired
class OffsetForLeaderPartition:
    partition: int = wire(Int32)
    current_leader_epoch: int = wire(Int32, default=-1)
    leader_epoch: int = wire(Int32)


@wired
class OffsetForLeaderTopic:
    topic: str = wire(String)
    partitions: tuple[OffsetForLeaderPartition, ...] = wire(Array(OffsetForLeaderPartition), default=())


@wired
class OffsetForLeaderEpochRequest:
    """Ask for the end offset of a leader epoch; followers and consumers detect truncation with it (KIP-320)."""

    KEY, VERSIONS, FLEXIBLE = 23, range(2, 5), 4

    replica_id: int = wire(Int32, since=3, default=-2)
    topics: tuple[OffsetForLeaderTopic, ...] = wire(Array(OffsetForLeaderTopic), default=())


@wired
class EpochEndOffset:
    error_code: int = wire(Int16, default=0)
    partition: int = wire(Int32)
    leader_epoch: int = wire(Int32, default=-1)
    end_offset: int = wire(Int64, default=-1)


@wired
class OffsetForLeaderTopicResult:
    topic: str = wire(String)
    partitions: tuple[EpochEndOffset, ...] = wire(Array(EpochEndOffset), default=())


@wired
class OffsetForLeaderEpochResponse:
    """The end offset of the largest epoch that is not above the requested one."""

    KEY, VERSIONS, FLEXIBLE = 23, range(2, 5), 4

    throttle_time_ms: int = wire(Int32, default=0)
    topics: tuple[OffsetForLeaderTopicResult, ...] = wire(Array(OffsetForLeaderTopicResult), default=())
