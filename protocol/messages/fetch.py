"""Fetch, key 1, versions 4-18.

v5 log start offset · v7 fetch sessions (KIP-227) · v9 leader epoch (KIP-320)
v11 rack, preferred replica (KIP-392) · v12 flexible, last fetched epoch, diverging epoch as a tag (KIP-595)
v13 topic ids instead of names (KIP-516) · v15 replica state as a tag (KIP-903)
v16 current leader and node endpoints as tags (KIP-951) · v17 replica directory id (KIP-853)
v18 high watermark as a tag (KIP-1166)
"""

from __future__ import annotations

from rota.protocol.messages.current_leader import LeaderIdAndEpoch, NodeEndpoint
from rota.protocol.wire import UUID_ZERO, Array, Int8, Int16, Int32, Int64, Nested, Records, String, Uuid, wire, wired


@wired
class ReplicaState:
    """The fetching follower, since v15."""

    replica_id: int = wire(Int32, default=-1)
    replica_epoch: int = wire(Int64, default=-1)


@wired
class FetchPartition:
    partition: int = wire(Int32)
    current_leader_epoch: int = wire(Int32, since=9, default=-1)
    fetch_offset: int = wire(Int64)
    last_fetched_epoch: int = wire(Int32, since=12, default=-1)
    log_start_offset: int = wire(Int64, since=5, default=-1)
    partition_max_bytes: int = wire(Int32)
    replica_directory_id: bytes = wire(Uuid, since=17, tag=0, default=UUID_ZERO)
    high_watermark: int = wire(Int64, since=18, tag=1, default=9223372036854775807)


@wired
class FetchTopic:
    topic: str = wire(String, until=12, default="")
    topic_id: bytes = wire(Uuid, since=13, default=UUID_ZERO)
    partitions: tuple[FetchPartition, ...] = wire(Array(FetchPartition), default=())


@wired
class ForgottenTopic:
    """Partitions to remove from the fetch session."""

    topic: str = wire(String, until=12, default="")
    topic_id: bytes = wire(Uuid, since=13, default=UUID_ZERO)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class FetchRequest:
    """Ask for records from offsets on. `replica_id` is -1 for a consumer. Session id 0 with epoch -1: no session."""

    KEY, VERSIONS, FLEXIBLE = 1, range(4, 19), 12

    cluster_id: str | None = wire(String, since=12, nullable_since=12, tag=0, default=None)
    replica_id: int = wire(Int32, until=14, default=-1)
    replica_state: ReplicaState | None = wire(Nested(ReplicaState), since=15, tag=1, default=None)
    max_wait_ms: int = wire(Int32)
    min_bytes: int = wire(Int32)
    max_bytes: int = wire(Int32, default=2147483647)
    isolation_level: int = wire(Int8, default=0)
    session_id: int = wire(Int32, since=7, default=0)
    session_epoch: int = wire(Int32, since=7, default=-1)
    topics: tuple[FetchTopic, ...] = wire(Array(FetchTopic), default=())
    forgotten_topics_data: tuple[ForgottenTopic, ...] = wire(Array(ForgottenTopic), since=7, default=())
    rack_id: str = wire(String, since=11, default="")


@wired
class EpochEndOffset:
    """The end offset of an epoch in the leader's log."""

    epoch: int = wire(Int32, default=-1)
    end_offset: int = wire(Int64, default=-1)


@wired
class SnapshotId:
    end_offset: int = wire(Int64, default=-1)
    epoch: int = wire(Int32, default=-1)


@wired
class AbortedTransaction:
    producer_id: int = wire(Int64)
    first_offset: int = wire(Int64)


@wired
class PartitionData:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)
    high_watermark: int = wire(Int64, default=-1)
    last_stable_offset: int = wire(Int64, default=-1)
    log_start_offset: int = wire(Int64, since=5, default=-1)
    diverging_epoch: EpochEndOffset | None = wire(Nested(EpochEndOffset), since=12, tag=0, default=None)
    current_leader: LeaderIdAndEpoch | None = wire(Nested(LeaderIdAndEpoch), since=12, tag=1, default=None)
    snapshot_id: SnapshotId | None = wire(Nested(SnapshotId), since=12, tag=2, default=None)
    aborted_transactions: tuple[AbortedTransaction, ...] | None = wire(
        Array(AbortedTransaction), nullable_since=0, default=None
    )
    preferred_read_replica: int = wire(Int32, since=11, default=-1)
    records: bytes | memoryview | None = wire(Records, nullable_since=0, default=b"")


@wired
class FetchableTopicResponse:
    topic: str = wire(String, until=12, default="")
    topic_id: bytes = wire(Uuid, since=13, default=UUID_ZERO)
    partitions: tuple[PartitionData, ...] = wire(Array(PartitionData), default=())


@wired
class FetchResponse:
    """`records` are batches as in the log; the last batch may be incomplete."""

    KEY, VERSIONS, FLEXIBLE = 1, range(4, 19), 12

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, since=7, default=0)
    session_id: int = wire(Int32, since=7, default=0)
    responses: tuple[FetchableTopicResponse, ...] = wire(Array(FetchableTopicResponse), default=())
    node_endpoints: tuple[NodeEndpoint, ...] = wire(Array(NodeEndpoint), since=16, tag=0, default=())
