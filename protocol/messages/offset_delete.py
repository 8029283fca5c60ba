"""OffsetDelete, key 47, version 0.

Since Kafka 2.4 (KIP-496).
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.protocol.wire import NEVER, Array, Int16, Int32, String, wire


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestPartition:
    partition_index: int = wire(Int32)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequestTopic:
    name: str = wire(String)
    partitions: tuple[OffsetDeleteRequestPartition, ...] = wire(Array(OffsetDeleteRequestPartition), default=())


@dataclass(slots=True, kw_only=True)
class OffsetDeleteRequest:
    """Forget committed offsets; the group must not subscribe to their topics."""

    KEY, VERSIONS, FLEXIBLE = 47, range(1), NEVER

    group_id: str = wire(String)
    topics: tuple[OffsetDeleteRequestTopic, ...] = wire(Array(OffsetDeleteRequestTopic), default=())


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponsePartition:
    partition_index: int = wire(Int32)
    error_code: int = wire(Int16, default=0)


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponseTopic:
    name: str = wire(String)
    partitions: tuple[OffsetDeleteResponsePartition, ...] = wire(Array(OffsetDeleteResponsePartition), default=())


@dataclass(slots=True, kw_only=True)
class OffsetDeleteResponse:
    """An error for the whole request, or one for each partition."""

    KEY, VERSIONS, FLEXIBLE = 47, range(1), NEVER

    error_code: int = wire(Int16, default=0)
    throttle_time_ms: int = wire(Int32, default=0)
    topics: tuple[OffsetDeleteResponseTopic, ...] = wire(Array(OffsetDeleteResponseTopic), default=())
