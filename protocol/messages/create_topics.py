"""CreateTopics, key 19, versions 2-7.

v4 defaults for partitions and replicas (KIP-464)
v5 flexible, the new topic's configuration in the response (KIP-525) · v6 quota errors (KIP-599) · v7 topic id
"""

from __future__ import annotations

from rota.protocol.wire import UUID_ZERO, Array, Bool, Int8, Int16, Int32, String, Uuid, wire, wired


@wired
class CreatableReplicaAssignment:
    partition_index: int = wire(Int32)
    broker_ids: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class CreatableTopicConfig:
    name: str = wire(String)
    value: str | None = wire(String, nullable_since=0)


@wired
class CreatableTopic:
    """`num_partitions` and `replication_factor` are -1 for the broker's default, or when `assignments` is given."""

    name: str = wire(String)
    num_partitions: int = wire(Int32)
    replication_factor: int = wire(Int16)
    assignments: tuple[CreatableReplicaAssignment, ...] = wire(Array(CreatableReplicaAssignment), default=())
    configs: tuple[CreatableTopicConfig, ...] = wire(Array(CreatableTopicConfig), default=())


@wired
class CreateTopicsRequest:
    """Create topics; with `validate_only` only check whether they could be created."""

    KEY, VERSIONS, FLEXIBLE = 19, range(2, 8), 5

    topics: tuple[CreatableTopic, ...] = wire(Array(CreatableTopic), default=())
    timeout_ms: int = wire(Int32, default=60000)
    validate_only: bool = wire(Bool, default=False)


@wired
class CreatableTopicConfigs:
    name: str = wire(String)
    value: str | None = wire(String, nullable_since=0)
    read_only: bool = wire(Bool)
    config_source: int = wire(Int8, default=-1)
    is_sensitive: bool = wire(Bool)


@wired
class CreatableTopicResult:
    """`configs` is None when the client may not describe them; `topic_config_error_code` has the reason."""

    name: str = wire(String)
    topic_id: bytes = wire(Uuid, since=7, default=UUID_ZERO)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    topic_config_error_code: int = wire(Int16, since=5, tag=0, default=0)
    num_partitions: int = wire(Int32, since=5, default=-1)
    replication_factor: int = wire(Int16, since=5, default=-1)
    configs: tuple[CreatableTopicConfigs, ...] | None = wire(
        Array(CreatableTopicConfigs), since=5, nullable_since=5, default=()
    )


@wired
class CreateTopicsResponse:
    """One result for each topic."""

    KEY, VERSIONS, FLEXIBLE = 19, range(2, 8), 5

    throttle_time_ms: int = wire(Int32, default=0)
    topics: tuple[CreatableTopicResult, ...] = wire(Array(CreatableTopicResult), default=())
