"""ListPartitionReassignments, key 46, version 0.

v0 flexible (KIP-455)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, String, wire, wired


@wired
class ListPartitionReassignmentsTopics:
    name: str = wire(String)
    partition_indexes: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class ListPartitionReassignmentsRequest:
    """Ask for ongoing reassignments. `topics` None: of all partitions."""

    KEY, VERSIONS, FLEXIBLE = 46, range(1), 0

    timeout_ms: int = wire(Int32, default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = wire(
        Array(ListPartitionReassignmentsTopics), nullable_since=0, default=None
    )


@wired
class OngoingPartitionReassignment:
    partition_index: int = wire(Int32)
    replicas: tuple[int, ...] = wire(Array(Int32), default=())
    adding_replicas: tuple[int, ...] = wire(Array(Int32), default=())
    removing_replicas: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class OngoingTopicReassignment:
    name: str = wire(String)
    partitions: tuple[OngoingPartitionReassignment, ...] = wire(Array(OngoingPartitionReassignment), default=())


@wired
class ListPartitionReassignmentsResponse:
    """The ongoing reassignments only."""

    KEY, VERSIONS, FLEXIBLE = 46, range(1), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    topics: tuple[OngoingTopicReassignment, ...] = wire(Array(OngoingTopicReassignment), default=())
