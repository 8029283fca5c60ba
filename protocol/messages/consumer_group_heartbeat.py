"""ConsumerGroupHeartbeat, key 68, versions 0-1.

v0 flexible (KIP-848) · v1 regular expressions, and the client makes its member id (KIP-1082)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, Nested, String, Uuid, wire, wired


@wired
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: bytes = wire(Uuid)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class ConsumerGroupHeartbeatRequest:
    """Join a group (epoch 0), stay in it, or leave it (-1; -2 for a static member that comes back).

    None and -1 stand for what has not changed since the last heartbeat. `topic_partitions` are what the member owns.
    """

    KEY, VERSIONS, FLEXIBLE = 68, range(2), 0

    group_id: str = wire(String)
    member_id: str = wire(String)
    member_epoch: int = wire(Int32)
    instance_id: str | None = wire(String, nullable_since=0, default=None)
    rack_id: str | None = wire(String, nullable_since=0, default=None)
    rebalance_timeout_ms: int = wire(Int32, default=-1)
    subscribed_topic_names: tuple[str, ...] | None = wire(Array(String), nullable_since=0, default=None)
    subscribed_topic_regex: str | None = wire(String, since=1, nullable_since=1, default=None)
    server_assignor: str | None = wire(String, nullable_since=0, default=None)
    topic_partitions: tuple[TopicPartitions, ...] | None = wire(Array(TopicPartitions), nullable_since=0, default=None)


@wired
class Assignment:
    """The partitions that the member may use from now on."""

    topic_partitions: tuple[TopicPartitions, ...] = wire(Array(TopicPartitions), default=())


@wired
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its assignment where that has changed."""

    KEY, VERSIONS, FLEXIBLE = 68, range(2), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    member_id: str | None = wire(String, nullable_since=0, default=None)
    member_epoch: int = wire(Int32, default=0)
    heartbeat_interval_ms: int = wire(Int32, default=0)
    assignment: Assignment | None = wire(Nested(Assignment), nullable_since=0, default=None)
