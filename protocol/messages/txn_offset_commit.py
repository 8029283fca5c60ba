"""TxnOffsetCommit, key 28, versions 0-5.

v1 as v0 · v2 leader epoch (KIP-320) · v3 flexible, member and generation (KIP-447) · v4 TRANSACTION_ABORTABLE (KIP-890)
v5 adds the offsets partition to the transaction by itself (KIP-890)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, Int64, String, wire, wired


@wired
class TxnOffsetCommitRequestPartition:
    partition_index: int = wire(Int32)
    committed_offset: int = wire(Int64)
    committed_leader_epoch: int = wire(Int32, since=2, default=-1)
    committed_metadata: str | None = wire(String, nullable_since=0, default="")


@wired
class TxnOffsetCommitRequestTopic:
    name: str = wire(String)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = wire(Array(TxnOffsetCommitRequestPartition), default=())


@wired
class TxnOffsetCommitRequest:
    """Commit offsets of a group when the producer's transaction commits.

    Generation -1 with an empty member id: a consumer that is not a member.
    """

    KEY, VERSIONS, FLEXIBLE = 28, range(6), 3

    transactional_id: str = wire(String)
    group_id: str = wire(String)
    producer_id: int = wire(Int64)
    producer_epoch: int = wire(Int16)
    generation_id: int = wire(Int32, since=3, default=-1)
    member_id: str = wire(String, since=3, default="")
    group_instance_id: str | None = wire(String, since=3, nullable_since=3, default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = wire(Array(TxnOffsetCommitRequestTopic), default=())


@wired
class TxnOffsetCommitResponsePartition:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)


@wired
class TxnOffsetCommitResponseTopic:
    name: str = wire(String)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = wire(Array(TxnOffsetCommitResponsePartition), default=())


@wired
class TxnOffsetCommitResponse:
    """One result for each partition."""

    KEY, VERSIONS, FLEXIBLE = 28, range(6), 3

    throttle_time_ms: int = wire(Int32, default=0)
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = wire(Array(TxnOffsetCommitResponseTopic), default=())
