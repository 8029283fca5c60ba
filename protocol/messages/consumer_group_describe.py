"""ConsumerGroupDescribe, key 69, versions 0-1.

v0 flexible (KIP-848) · v1 member type (KIP-1099)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int8, Int16, Int32, Nested, String, Uuid, wire, wired


@wired
class ConsumerGroupDescribeRequest:
    """Ask for state, members and assignments of groups of the consumer protocol (KIP-848)."""

    KEY, VERSIONS, FLEXIBLE = 69, range(2), 0

    group_ids: tuple[str, ...] = wire(Array(String), default=())
    include_authorized_operations: bool = wire(Bool, default=False)


@wired
class TopicPartitions:
    topic_id: bytes = wire(Uuid)
    topic_name: str = wire(String)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class Assignment:
    topic_partitions: tuple[TopicPartitions, ...] = wire(Array(TopicPartitions), default=())


@wired
class Member:
    member_id: str = wire(String)
    instance_id: str | None = wire(String, nullable_since=0, default=None)
    rack_id: str | None = wire(String, nullable_since=0, default=None)
    member_epoch: int = wire(Int32)
    client_id: str = wire(String)
    client_host: str = wire(String)
    subscribed_topic_names: tuple[str, ...] = wire(Array(String), default=())
    subscribed_topic_regex: str | None = wire(String, nullable_since=0, default=None)
    assignment: Assignment = wire(Nested(Assignment))
    target_assignment: Assignment = wire(Nested(Assignment))
    member_type: int = wire(Int8, since=1, default=-1)


@wired
class DescribedGroup:
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    group_id: str = wire(String)
    group_state: str = wire(String, default="")
    group_epoch: int = wire(Int32)
    assignment_epoch: int = wire(Int32)
    assignor_name: str = wire(String)
    members: tuple[Member, ...] = wire(Array(Member), default=())
    authorized_operations: int = wire(Int32, default=-2147483648)


@wired
class ConsumerGroupDescribeResponse:
    """One result for each group; GROUP_ID_NOT_FOUND for a classic group."""

    KEY, VERSIONS, FLEXIBLE = 69, range(2), 0

    throttle_time_ms: int = wire(Int32, default=0)
    groups: tuple[DescribedGroup, ...] = wire(Array(DescribedGroup), default=())
