"""AlterPartitionReassignments, key 45, versions 0-1.

v0 flexible (KIP-455) · v1 may forbid changes of the replication factor (KIP-860)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int16, Int32, String, wire, wired


@wired
class ReassignablePartition:
    """`replicas` None: cancel the ongoing reassignment."""

    partition_index: int = wire(Int32)
    replicas: tuple[int, ...] | None = wire(Array(Int32), nullable_since=0, default=None)


@wired
class ReassignableTopic:
    name: str = wire(String)
    partitions: tuple[ReassignablePartition, ...] = wire(Array(ReassignablePartition), default=())


@wired
class AlterPartitionReassignmentsRequest:
    """Assign partitions to other brokers."""

    KEY, VERSIONS, FLEXIBLE = 45, range(2), 0

    timeout_ms: int = wire(Int32, default=60000)
    allow_replication_factor_change: bool = wire(Bool, since=1, default=True)
    topics: tuple[ReassignableTopic, ...] = wire(Array(ReassignableTopic), default=())


@wired
class ReassignablePartitionResponse:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)


@wired
class ReassignableTopicResponse:
    name: str = wire(String)
    partitions: tuple[ReassignablePartitionResponse, ...] = wire(Array(ReassignablePartitionResponse), default=())


@wired
class AlterPartitionReassignmentsResponse:
    """One result for each partition."""

    KEY, VERSIONS, FLEXIBLE = 45, range(2), 0

    throttle_time_ms: int = wire(Int32, default=0)
    allow_replication_factor_change: bool = wire(Bool, since=1, default=True)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    responses: tuple[ReassignableTopicResponse, ...] = wire(Array(ReassignableTopicResponse), default=())
