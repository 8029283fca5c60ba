"""DescribeTopicPartitions, key 75, version 0.

v0 flexible (KIP-966)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int16, Int32, Nested, String, Uuid, wire, wired


@wired
class TopicRequest:
    name: str = wire(String)


@wired
class Cursor:
    """The partition at which the next page begins."""

    topic_name: str = wire(String)
    partition_index: int = wire(Int32)


@wired
class DescribeTopicPartitionsRequest:
    """Ask for the partitions of topics, in pages."""

    KEY, VERSIONS, FLEXIBLE = 75, range(1), 0

    topics: tuple[TopicRequest, ...] = wire(Array(TopicRequest), default=())
    response_partition_limit: int = wire(Int32, default=2000)
    cursor: Cursor | None = wire(Nested(Cursor), nullable_since=0, default=None)


@wired
class DescribeTopicPartitionsResponsePartition:
    error_code: int = wire(Int16, default=0)
    partition_index: int = wire(Int32)
    leader_id: int = wire(Int32)
    leader_epoch: int = wire(Int32, default=-1)
    replica_nodes: tuple[int, ...] = wire(Array(Int32), default=())
    isr_nodes: tuple[int, ...] = wire(Array(Int32), default=())
    eligible_leader_replicas: tuple[int, ...] | None = wire(Array(Int32), nullable_since=0, default=None)
    last_known_elr: tuple[int, ...] | None = wire(Array(Int32), nullable_since=0, default=None)
    offline_replicas: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class DescribeTopicPartitionsResponseTopic:
    error_code: int = wire(Int16, default=0)
    name: str | None = wire(String, nullable_since=0)
    topic_id: bytes = wire(Uuid)
    is_internal: bool = wire(Bool, default=False)
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = wire(
        Array(DescribeTopicPartitionsResponsePartition), default=()
    )
    topic_authorized_operations: int = wire(Int32, default=-2147483648)


@wired
class DescribeTopicPartitionsResponse:
    """`next_cursor` is None on the last page."""

    KEY, VERSIONS, FLEXIBLE = 75, range(1), 0

    throttle_time_ms: int = wire(Int32, default=0)
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = wire(
        Array(DescribeTopicPartitionsResponseTopic), default=()
    )
    next_cursor: Cursor | None = wire(Nested(Cursor), nullable_since=0, default=None)
