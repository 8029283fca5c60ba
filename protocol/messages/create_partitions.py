"""CreatePartitions, key 37, versions 0-3.

v2 flexible · v3 quota errors (KIP-599)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int16, Int32, String, wire, wired


@wired
class CreatePartitionsAssignment:
    broker_ids: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class CreatePartitionsTopic:
    """`count` is the new total; `assignments` are those of the new partitions, None: the broker assigns them."""

    name: str = wire(String)
    count: int = wire(Int32)
    assignments: tuple[CreatePartitionsAssignment, ...] | None = wire(
        Array(CreatePartitionsAssignment), nullable_since=0, default=None
    )


@wired
class CreatePartitionsRequest:
    """Add partitions to topics."""

    KEY, VERSIONS, FLEXIBLE = 37, range(4), 2

    topics: tuple[CreatePartitionsTopic, ...] = wire(Array(CreatePartitionsTopic), default=())
    timeout_ms: int = wire(Int32)
    validate_only: bool = wire(Bool, default=False)


@wired
class CreatePartitionsTopicResult:
    name: str = wire(String)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)


@wired
class CreatePartitionsResponse:
    """One result for each topic."""

    KEY, VERSIONS, FLEXIBLE = 37, range(4), 2

    throttle_time_ms: int = wire(Int32, default=0)
    results: tuple[CreatePartitionsTopicResult, ...] = wire(Array(CreatePartitionsTopicResult), default=())
