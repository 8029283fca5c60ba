"""DescribeQuorum, key 55, versions 0-2.

v0 flexible (KIP-595) · v1 times of a replica's last fetch and of its last catch-up (KIP-836)
v2 messages, addresses, directory ids (KIP-853)
"""

from __future__ import annotations

from rota.protocol.wire import UUID_ZERO, Array, Int16, Int32, Int64, String, UInt16, Uuid, wire, wired


@wired
class QuorumPartition:
    partition_index: int = wire(Int32)


@wired
class QuorumTopic:
    topic_name: str = wire(String)
    partitions: tuple[QuorumPartition, ...] = wire(Array(QuorumPartition), default=())


@wired
class DescribeQuorumRequest:
    """Ask for the state of the metadata quorum."""

    KEY, VERSIONS, FLEXIBLE = 55, range(3), 0

    topics: tuple[QuorumTopic, ...] = wire(Array(QuorumTopic), default=())


@wired
class ReplicaState:
    replica_id: int = wire(Int32)
    replica_directory_id: bytes = wire(Uuid, since=2, default=UUID_ZERO)
    log_end_offset: int = wire(Int64)
    last_fetch_timestamp: int = wire(Int64, since=1, default=-1)
    last_caught_up_timestamp: int = wire(Int64, since=1, default=-1)


@wired
class PartitionData:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, since=2, nullable_since=2, default=None)
    leader_id: int = wire(Int32)
    leader_epoch: int = wire(Int32)
    high_watermark: int = wire(Int64)
    current_voters: tuple[ReplicaState, ...] = wire(Array(ReplicaState), default=())
    observers: tuple[ReplicaState, ...] = wire(Array(ReplicaState), default=())


@wired
class TopicData:
    topic_name: str = wire(String)
    partitions: tuple[PartitionData, ...] = wire(Array(PartitionData), default=())


@wired
class Listener:
    name: str = wire(String)
    host: str = wire(String)
    port: int = wire(UInt16)


@wired
class Node:
    node_id: int = wire(Int32)
    listeners: tuple[Listener, ...] = wire(Array(Listener), default=())


@wired
class DescribeQuorumResponse:
    """The voters and observers with their log end offsets."""

    KEY, VERSIONS, FLEXIBLE = 55, range(3), 0

    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, since=2, nullable_since=2, default=None)
    topics: tuple[TopicData, ...] = wire(Array(TopicData), default=())
    nodes: tuple[Node, ...] = wire(Array(Node), since=2, default=())
