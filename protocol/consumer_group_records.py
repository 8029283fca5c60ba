"""Keys and values of the records of KIP-848's groups in `__consumer_offsets`, byte-equal to Apache Kafka's.

Key types 3 to 8 and 16. A key is an int16 type and fields, a value is an int16 version and fields.

Laws
    Kafka 4.3 has one version of each value, 0; fields that came later are tagged. Another version is refused.
    A key of another type decodes to None.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from rota.protocol.compiler import codec
from rota.protocol.wire import NEVER, Array, Blob, DecodeError, Int8, Int32, Int64, Nested, String, Uuid, wire, wired

VALUE_VERSION: Final = 0
_PREFIX: Final = struct.Struct(">h")


@wired
class EpochKey:
    """Type 3."""

    VERSIONS, FLEXIBLE = range(3, 4), NEVER

    group: str = wire(String)


@wired
class PartitionMetadataKey:
    """Type 4: the subscribed topics, as Kafka 4.0 wrote them. `metadata_hash` of EpochValue has replaced it."""

    VERSIONS, FLEXIBLE = range(4, 5), NEVER

    group: str = wire(String)


@wired
class MemberKey:
    """Type 5."""

    VERSIONS, FLEXIBLE = range(5, 6), NEVER

    group: str = wire(String)
    member_id: str = wire(String)


@wired
class TargetEpochKey:
    """Type 6."""

    VERSIONS, FLEXIBLE = range(6, 7), NEVER

    group: str = wire(String)


@wired
class TargetMemberKey:
    """Type 7."""

    VERSIONS, FLEXIBLE = range(7, 8), NEVER

    group: str = wire(String)
    member_id: str = wire(String)


@wired
class CurrentAssignmentKey:
    """Type 8."""

    VERSIONS, FLEXIBLE = range(8, 9), NEVER

    group: str = wire(String)
    member_id: str = wire(String)


@wired
class RegularExpressionKey:
    """Type 16."""

    VERSIONS, FLEXIBLE = range(16, 17), NEVER

    group: str = wire(String)
    regular_expression: str = wire(String)


@wired
class EpochValue:
    """The group epoch. `metadata_hash` is that of the subscribed topics (KIP-1101); 0 for none."""

    VERSIONS, FLEXIBLE = range(1), 0

    epoch: int = wire(Int32)
    metadata_hash: int = wire(Int64, tag=0, default=0)


@wired
class PartitionMetadata:
    partition: int = wire(Int32)
    racks: tuple[str, ...] = wire(Array(String), default=())


@wired
class TopicMetadata:
    topic_id: bytes = wire(Uuid)
    topic_name: str = wire(String)
    num_partitions: int = wire(Int32)
    partition_metadata: tuple[PartitionMetadata, ...] = wire(Array(PartitionMetadata), default=())


@wired
class PartitionMetadataValue:
    VERSIONS, FLEXIBLE = range(1), 0

    topics: tuple[TopicMetadata, ...] = wire(Array(TopicMetadata), default=())


@wired
class ClassicProtocol:
    name: str = wire(String)
    metadata: bytes = wire(Blob)


@wired
class ClassicMemberMetadata:
    """What only a member of the classic protocol has."""

    session_timeout_ms: int = wire(Int32, default=0)
    supported_protocols: tuple[ClassicProtocol, ...] = wire(Array(ClassicProtocol), default=())


@wired
class MemberValue:
    """What a member says of itself; times in ms."""

    VERSIONS, FLEXIBLE = range(1), 0

    instance_id: str | None = wire(String, nullable_since=0, default=None)
    rack_id: str | None = wire(String, nullable_since=0, default=None)
    client_id: str = wire(String)
    client_host: str = wire(String)
    subscribed_topic_names: tuple[str, ...] = wire(Array(String), default=())
    subscribed_topic_regex: str | None = wire(String, nullable_since=0, default=None)
    rebalance_timeout_ms: int = wire(Int32, default=-1)
    server_assignor: str | None = wire(String, nullable_since=0, default=None)
    classic_member_metadata: ClassicMemberMetadata | None = wire(
        Nested(ClassicMemberMetadata), tag=0, nullable_since=0, default=None
    )


@wired
class TargetEpochValue:
    """The epoch of the target assignment, and when it was computed (KIP-1263), ms since the epoch; 0: not known."""

    VERSIONS, FLEXIBLE = range(1), 0

    assignment_epoch: int = wire(Int32)
    assignment_timestamp: int = wire(Int64, tag=0, default=0)


@wired
class TargetPartitions:
    topic_id: bytes = wire(Uuid)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class TargetMemberValue:
    """The target assignment of one member."""

    VERSIONS, FLEXIBLE = range(1), 0

    topic_partitions: tuple[TargetPartitions, ...] = wire(Array(TargetPartitions), default=())


@wired
class CurrentPartitions:
    """Partitions of one topic, and the member epoch in which each was assigned (KIP-1251); None: the member's epoch."""

    topic_id: bytes = wire(Uuid)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())
    assignment_epochs: tuple[int, ...] | None = wire(Array(Int32), tag=0, nullable_since=0, default=None)


@wired
class CurrentAssignmentValue:
    """The member's epochs and state, what it owns, and what it still has to revoke."""

    VERSIONS, FLEXIBLE = range(1), 0

    member_epoch: int = wire(Int32)
    previous_member_epoch: int = wire(Int32)
    state: int = wire(Int8)
    assigned_partitions: tuple[CurrentPartitions, ...] = wire(Array(CurrentPartitions), default=())
    partitions_pending_revocation: tuple[CurrentPartitions, ...] = wire(Array(CurrentPartitions), default=())


@wired
class RegularExpressionValue:
    """The topics that matched, the version of the metadata, and when, ms since the epoch."""

    VERSIONS, FLEXIBLE = range(1), 0

    topics: tuple[str, ...] = wire(Array(String), default=())
    version: int = wire(Int64)
    timestamp: int = wire(Int64)


KEY_TYPES: Final[dict[int, type[Any]]] = {
    3: EpochKey,
    4: PartitionMetadataKey,
    5: MemberKey,
    6: TargetEpochKey,
    7: TargetMemberKey,
    8: CurrentAssignmentKey,
    16: RegularExpressionKey,
}
VALUES: Final[dict[type[Any], type[Any]]] = {
    EpochKey: EpochValue,
    PartitionMetadataKey: PartitionMetadataValue,
    MemberKey: MemberValue,
    TargetEpochKey: TargetEpochValue,
    TargetMemberKey: TargetMemberValue,
    CurrentAssignmentKey: CurrentAssignmentValue,
    RegularExpressionKey: RegularExpressionValue,
}
_TYPE_OF: Final = {key_type: number for number, key_type in KEY_TYPES.items()}


def encode_key(key: Any) -> bytes:
    """Type and fields."""
    number = _TYPE_OF[type(key)]
    return _PREFIX.pack(number) + codec(type(key), number).encode(key)


def encode_value(value: Any) -> bytes:
    """Version and fields."""
    return _PREFIX.pack(VALUE_VERSION) + codec(type(value), VALUE_VERSION).encode(value)


def decode_key(raw: bytes) -> Any | None:
    """Decode a key; None for one of another type. Raises DecodeError."""
    number = _prefix(raw)
    key_type = KEY_TYPES.get(number)
    return None if key_type is None else codec(key_type, number).decode(raw, _PREFIX.size)[0]


def decode_value(key: Any, raw: bytes) -> Any:
    """Decode the value of a key. Raises DecodeError, also for an unknown version."""
    message, version = VALUES[type(key)], _prefix(raw)
    if version != VALUE_VERSION:
        raise DecodeError(f"{message.__name__} of version {version}")
    return codec(message, version).decode(raw, _PREFIX.size)[0]


def _prefix(raw: bytes) -> int:
    if len(raw) < _PREFIX.size:
        raise DecodeError("a record of __consumer_offsets without its version")
    return int(_PREFIX.unpack_from(raw)[0])
