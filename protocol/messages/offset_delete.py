"""OffsetDelete, key 47, version 0.

Since Kafka 2.4 (KIP-496).
"""

from __future__ import annotations

from rota.protocol.wire import NEVER, Array, Int16, Int32, String, wire, wired


@wired
class OffsetDeleteRequestPartition:
    partition_index: int = wire(Int32)


@wired
class OffsetDeleteRequestTopic:
    name: str = wire(String)
    partitions: tuple[OffsetDeleteRequestPartition, ...] = wire(Array(OffsetDeleteRequestPartition), default=())


@wired
class OffsetDeleteRequest:
    """Delete committed offsets of topics to which the group does not subscribe."""

    KEY, VERSIONS, FLEXIBLE = 47, range(1), NEVER

    group_id: str = wire(String)
    topics: tuple[OffsetDeleteRequestTopic, ...] = wire(Array(OffsetDeleteRequestTopic), default=())


@wired
class OffsetDeleteResponsePartition:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)


@wired
class OffsetDeleteResponseTopic:
    name: str = wire(String)
    partitions: tuple[OffsetDeleteResponsePartition, ...] = wire(Array(OffsetDeleteResponsePartition), default=())


@wired
class OffsetDeleteResponse:
    """An error code for the whole request, or one for each partition."""

    KEY, VERSIONS, FLEXIBLE = 47, range(1), NEVER

    error_code: int = wire(Int16, default=0)
    throttle_time_ms: int = wire(Int32, default=0)
    topics: tuple[OffsetDeleteResponseTopic, ...] = wire(Array(OffsetDeleteResponseTopic), default=())
