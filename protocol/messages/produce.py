"""Produce, key 0, versions 3-13.

v3 transactional id, magic 2 · v5 log start offset · v7 zstd · v8 which record was refused, and why (KIP-467)
v9 flexible · v10 current leader as a tag (KIP-951) · v11-12 TRANSACTION_ABORTABLE (KIP-890)
v13 topic ids instead of names (KIP-516)
advertised from version 0, because librdkafka decides on compression by it; 0-2 are refused
"""

from __future__ import annotations

from rota.protocol.wire import UUID_ZERO, Array, Int16, Int32, Int64, Nested, Records, String, Uuid, wire, wired


@wired
class PartitionProduceData:
    index: int = wire(Int32)
    records: bytes | memoryview | None = wire(Records, nullable_since=0)


@wired
class TopicProduceData:
    name: str = wire(String, until=12, default="")
    topic_id: bytes = wire(Uuid, since=13, default=UUID_ZERO)
    partition_data: tuple[PartitionProduceData, ...] = wire(Array(PartitionProduceData), default=())


@wired
class ProduceRequest:
    """`acks`: 0 no answer, 1 written, -1 in all in-sync replicas."""

    KEY, VERSIONS, FLEXIBLE = 0, range(3, 14), 9

    transactional_id: str | None = wire(String, nullable_since=0, default=None)
    acks: int = wire(Int16)
    timeout_ms: int = wire(Int32)
    topic_data: tuple[TopicProduceData, ...] = wire(Array(TopicProduceData), default=())


@wired
class BatchIndexAndErrorMessage:
    """One refused record, by its place in the batch."""

    batch_index: int = wire(Int32)
    batch_index_error_message: str | None = wire(String, nullable_since=0, default=None)


@wired
class LeaderIdAndEpoch:
    """Who leads now; written beside NOT_LEADER_OR_FOLLOWER only."""

    leader_id: int = wire(Int32, default=-1)
    leader_epoch: int = wire(Int32, default=-1)


@wired
class PartitionProduceResponse:
    index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)
    base_offset: int = wire(Int64, default=-1)
    log_append_time_ms: int = wire(Int64, default=-1)
    log_start_offset: int = wire(Int64, since=5, default=-1)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = wire(Array(BatchIndexAndErrorMessage), since=8, default=())
    error_message: str | None = wire(String, since=8, nullable_since=8, default=None)
    current_leader: LeaderIdAndEpoch | None = wire(Nested(LeaderIdAndEpoch), since=10, tag=0, default=None)


@wired
class TopicProduceResponse:
    name: str = wire(String, until=12, default="")
    topic_id: bytes = wire(Uuid, since=13, default=UUID_ZERO)
    partition_responses: tuple[PartitionProduceResponse, ...] = wire(Array(PartitionProduceResponse), default=())


@wired
class NodeEndpoint:
    node_id: int = wire(Int32)
    host: str = wire(String)
    port: int = wire(Int32)
    rack: str | None = wire(String, nullable_since=0, default=None)


@wired
class ProduceResponse:
    """Where each batch went."""

    KEY, VERSIONS, FLEXIBLE = 0, range(3, 14), 9

    responses: tuple[TopicProduceResponse, ...] = wire(Array(TopicProduceResponse), default=())
    throttle_time_ms: int = wire(Int32, default=0)
    node_endpoints: tuple[NodeEndpoint, ...] = wire(Array(NodeEndpoint), since=10, tag=0, default=())
