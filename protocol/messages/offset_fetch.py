"""OffsetFetch, key 9, versions 1-10.

v2 null means all topics, error code for the whole response · v3 throttle time · v5 leader epoch (KIP-320)
v6 flexible · v7 stable offsets only (KIP-447) · v8 several groups (KIP-709)
v9 member epochs of the consumer protocol (KIP-848) · v10 topic ids instead of names
"""

from __future__ import annotations

from rota.protocol.wire import UUID_ZERO, Array, Bool, Int16, Int32, Int64, String, Uuid, wire, wired


@wired
class OffsetFetchRequestTopic:
    name: str = wire(String)
    partition_indexes: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class OffsetFetchRequestTopics:
    name: str = wire(String, until=9, default="")
    topic_id: bytes = wire(Uuid, since=10, default=UUID_ZERO)
    partition_indexes: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class OffsetFetchRequestGroup:
    group_id: str = wire(String)
    member_id: str | None = wire(String, since=9, nullable_since=9, default=None)
    member_epoch: int = wire(Int32, since=9, default=-1)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = wire(Array(OffsetFetchRequestTopics), nullable_since=0)


@wired
class OffsetFetchRequest:
    """Ask for committed offsets. `topics` None: of all topics. v0-7 name one group, later versions `groups`."""

    KEY, VERSIONS, FLEXIBLE = 9, range(1, 11), 6

    group_id: str = wire(String, until=7, default="")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = wire(
        Array(OffsetFetchRequestTopic), until=7, nullable_since=2, default=()
    )
    groups: tuple[OffsetFetchRequestGroup, ...] = wire(Array(OffsetFetchRequestGroup), since=8, default=())
    require_stable: bool = wire(Bool, since=7, default=False)


@wired
class OffsetFetchResponsePartition:
    partition_index: int = wire(Int32)
    committed_offset: int = wire(Int64)
    committed_leader_epoch: int = wire(Int32, since=5, default=-1)
    metadata: str | None = wire(String, nullable_since=0, default="")
    error_code: int = wire(Int16, default=0)


@wired
class OffsetFetchResponseTopic:
    name: str = wire(String)
    partitions: tuple[OffsetFetchResponsePartition, ...] = wire(Array(OffsetFetchResponsePartition), default=())


@wired
class OffsetFetchResponsePartitions:
    partition_index: int = wire(Int32)
    committed_offset: int = wire(Int64)
    committed_leader_epoch: int = wire(Int32, default=-1)
    metadata: str | None = wire(String, nullable_since=0, default="")
    error_code: int = wire(Int16, default=0)


@wired
class OffsetFetchResponseTopics:
    name: str = wire(String, until=9, default="")
    topic_id: bytes = wire(Uuid, since=10, default=UUID_ZERO)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = wire(Array(OffsetFetchResponsePartitions), default=())


@wired
class OffsetFetchResponseGroup:
    group_id: str = wire(String)
    topics: tuple[OffsetFetchResponseTopics, ...] = wire(Array(OffsetFetchResponseTopics), default=())
    error_code: int = wire(Int16, default=0)


@wired
class OffsetFetchResponse:
    """A partition without a committed offset has -1, empty metadata and no error."""

    KEY, VERSIONS, FLEXIBLE = 9, range(1, 11), 6

    throttle_time_ms: int = wire(Int32, since=3, default=0)
    topics: tuple[OffsetFetchResponseTopic, ...] = wire(Array(OffsetFetchResponseTopic), until=7, default=())
    error_code: int = wire(Int16, since=2, until=7, default=0)
    groups: tuple[OffsetFetchResponseGroup, ...] = wire(Array(OffsetFetchResponseGroup), since=8, default=())
