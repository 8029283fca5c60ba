"""Metadata, key 3, versions 0-13.

v1 null means all topics, racks, controller · v2 cluster id · v3 throttle time
v4 auto-creation may be disabled · v5 offline replicas · v7 leader epochs · v8 authorized operations (KIP-430)
v9 flexible · v10 topic ids (KIP-516) · v11 the cluster's operations move to DescribeCluster (KIP-700)
v12 topics by id · v13 error code for the whole response
"""

from __future__ import annotations

from rota.protocol.wire import UUID_ZERO, Array, Bool, Int16, Int32, String, Uuid, wire, wired


@wired
class MetadataRequestTopic:
    """A topic by name, or since v12 by id with `name` None."""

    topic_id: bytes = wire(Uuid, since=10, default=UUID_ZERO)
    name: str | None = wire(String, nullable_since=10)


@wired
class MetadataRequest:
    """Ask for topics, their partitions and leaders. None: all topics; in v0 () stands for all topics."""

    KEY, VERSIONS, FLEXIBLE = 3, range(14), 9

    topics: tuple[MetadataRequestTopic, ...] | None = wire(Array(MetadataRequestTopic), nullable_since=1)
    allow_auto_topic_creation: bool = wire(Bool, since=4, default=True)
    include_cluster_authorized_operations: bool = wire(Bool, since=8, until=10, default=False)
    include_topic_authorized_operations: bool = wire(Bool, since=8, default=False)


@wired
class MetadataResponseBroker:
    node_id: int = wire(Int32)
    host: str = wire(String)
    port: int = wire(Int32)
    rack: str | None = wire(String, since=1, nullable_since=1, default=None)


@wired
class MetadataResponsePartition:
    """`leader_id` is -1 when the partition has no leader."""

    error_code: int = wire(Int16, default=0)
    partition_index: int = wire(Int32)
    leader_id: int = wire(Int32)
    leader_epoch: int = wire(Int32, since=7, default=-1)
    replica_nodes: tuple[int, ...] = wire(Array(Int32), default=())
    isr_nodes: tuple[int, ...] = wire(Array(Int32), default=())
    offline_replicas: tuple[int, ...] = wire(Array(Int32), since=5, default=())


@wired
class MetadataResponseTopic:
    """`name` is None only when the id is unknown; `topic_id` is zero only when the name is unknown."""

    error_code: int = wire(Int16, default=0)
    name: str | None = wire(String, nullable_since=12)
    topic_id: bytes = wire(Uuid, since=10, default=UUID_ZERO)
    is_internal: bool = wire(Bool, since=1, default=False)
    partitions: tuple[MetadataResponsePartition, ...] = wire(Array(MetadataResponsePartition), default=())
    topic_authorized_operations: int = wire(Int32, since=8, default=-2147483648)


@wired
class MetadataResponse:
    """The brokers, and the partitions of each topic with their leaders."""

    KEY, VERSIONS, FLEXIBLE = 3, range(14), 9

    throttle_time_ms: int = wire(Int32, since=3, default=0)
    brokers: tuple[MetadataResponseBroker, ...] = wire(Array(MetadataResponseBroker), default=())
    cluster_id: str | None = wire(String, since=2, nullable_since=2, default=None)
    controller_id: int = wire(Int32, since=1, default=-1)
    topics: tuple[MetadataResponseTopic, ...] = wire(Array(MetadataResponseTopic), default=())
    cluster_authorized_operations: int = wire(Int32, since=8, until=10, default=-2147483648)
    error_code: int = wire(Int16, since=13, default=0)
