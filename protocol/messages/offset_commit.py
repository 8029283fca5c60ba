"""OffsetCommit, key 8, versions 2-10.

v3 throttle time · v2-4 retention time · v6 leader epoch (KIP-320) · v7 static members (KIP-345) · v8 flexible
v9 member epochs of the consumer protocol (KIP-848) · v10 topic ids instead of names
"""

from __future__ import annotations

from rota.protocol.wire import UUID_ZERO, Array, Int16, Int32, Int64, String, Uuid, wire, wired


@wired
class OffsetCommitRequestPartition:
    partition_index: int = wire(Int32)
    committed_offset: int = wire(Int64)
    committed_leader_epoch: int = wire(Int32, since=6, default=-1)
    committed_metadata: str | None = wire(String, nullable_since=0, default="")


@wired
class OffsetCommitRequestTopic:
    name: str = wire(String, until=9, default="")
    topic_id: bytes = wire(Uuid, since=10, default=UUID_ZERO)
    partitions: tuple[OffsetCommitRequestPartition, ...] = wire(Array(OffsetCommitRequestPartition), default=())


@wired
class OffsetCommitRequest:
    """Commit offsets. Generation -1 with an empty member id: a consumer that is not a member."""

    KEY, VERSIONS, FLEXIBLE = 8, range(2, 11), 8

    group_id: str = wire(String)
    generation_id_or_member_epoch: int = wire(Int32, default=-1)
    member_id: str = wire(String, default="")
    group_instance_id: str | None = wire(String, since=7, nullable_since=7, default=None)
    retention_time_ms: int = wire(Int64, until=4, default=-1)
    topics: tuple[OffsetCommitRequestTopic, ...] = wire(Array(OffsetCommitRequestTopic), default=())


@wired
class OffsetCommitResponsePartition:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)


@wired
class OffsetCommitResponseTopic:
    name: str = wire(String, until=9, default="")
    topic_id: bytes = wire(Uuid, since=10, default=UUID_ZERO)
    partitions: tuple[OffsetCommitResponsePartition, ...] = wire(Array(OffsetCommitResponsePartition), default=())


@wired
class OffsetCommitResponse:
    """One result for each partition."""

    KEY, VERSIONS, FLEXIBLE = 8, range(2, 11), 8

    throttle_time_ms: int = wire(Int32, since=3, default=0)
    topics: tuple[OffsetCommitResponseTopic, ...] = wire(Array(OffsetCommitResponseTopic), default=())
