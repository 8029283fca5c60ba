"""Produce, key 0, versions 3-13.

v3 transactional id, magic 2 · v5 log start offset · v7 zstd · v8 error of each refused record (KIP-467)
v9 flexible · v10 current leader as a tag (KIP-951) · v11-12 TRANSACTION_ABORTABLE (KIP-890)
v13 topic ids instead of names (KIP-516)
advertised from version 0, because librdkafka derives its compression types from it; 0-2 are refused
"""

from __future__ import annotations

from rota.protocol.messages.current_leader import LeaderIdAndEpoch, NodeEndpoint
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
    """`acks`: 0 no response, 1 written by the leader, -1 by all in-sync replicas."""

    KEY, VERSIONS, FLEXIBLE = 0, range(3, 14), 9

    transactional_id: str | None = wire(String, nullable_since=0, default=None)
    acks: int = wire(Int16)
    timeout_ms: int = wire(Int32)
    topic_data: tuple[TopicProduceData, ...] = wire(Array(TopicProduceData), default=())


@wired
class BatchIndexAndErrorMessage:
    """The error of one record, by its index in the batch."""

    batch_index: int = wire(Int32)
    batch_index_error_message: str | None = wire(String, nullable_since=0, default=None)


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
class ProduceResponse:
    """The base offset of each batch."""

    KEY, VERSIONS, FLEXIBLE = 0, range(3, 14), 9

    responses: tuple[TopicProduceResponse, ...] = wire(Array(TopicProduceResponse), default=())
    throttle_time_ms: int = wire(Int32, default=0)
    node_endpoints: tuple[NodeEndpoint, ...] = wire(Array(NodeEndpoint), since=10, tag=0, default=())
