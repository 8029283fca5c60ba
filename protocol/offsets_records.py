"""Keys and values of the records in `__consumer_offsets`, byte-equal to Apache Kafka's.

A key is an int16 type and fields, a value is an int16 version and fields; a record without a value (a tombstone)
deletes its key. Types 0 and 1: a committed offset. Type 2: a classic group.

Laws
    Kafka writes offsets as value v4 (v1 when the client gave a retention time), groups as v3. Versions 0-4 are decoded.
    A key of another type is written by a newer broker: it decodes to None, and the reader skips the record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Final, TypeVar

from rota.protocol.compiler import codec, field_writer
from rota.protocol.wire import NEVER, UUID_ZERO, Array, Blob, DecodeError, Int32, Int64, String, Uuid, wire, wired

OFFSET_VERSION: Final = 4
OFFSET_WITH_EXPIRY_VERSION: Final = 1
GROUP_VERSION: Final = 3

_PREFIX: Final = struct.Struct(">h")
pack_offset_head: Final = struct.Struct(">hqi").pack  # of an OffsetCommitValue v4: version, offset, leader epoch
pack_partition: Final = struct.Struct(">i").pack  # the end of an OffsetCommitKey


@wired
class OffsetCommitKey:
    """Type 1; the obsolete type 0 has the same fields."""

    VERSIONS, FLEXIBLE = range(2), NEVER

    group: str = wire(String)
    topic: str = wire(String)
    partition: int = wire(Int32)


@wired
class GroupMetadataKey:
    """Type 2."""

    VERSIONS, FLEXIBLE = range(2, 3), NEVER

    group: str = wire(String)


@wired
class OffsetCommitValue:
    """v1 expiry · v2 without expiry · v3 leader epoch (KIP-320) · v4 flexible, topic id as a tag. Times in epoch ms."""

    VERSIONS, FLEXIBLE = range(5), 4

    offset: int = wire(Int64)
    leader_epoch: int = wire(Int32, since=3, default=-1)
    metadata: str = wire(String)
    commit_timestamp: int = wire(Int64)
    expire_timestamp: int = wire(Int64, since=1, until=1, default=-1)
    topic_id: bytes = wire(Uuid, since=4, tag=0, default=UUID_ZERO)


@wired
class MemberMetadata:
    """One member; timeouts in ms. `rebalance_timeout` is -1 in v0, which means the session timeout."""

    VERSIONS, FLEXIBLE = range(5), 4

    member_id: str = wire(String)
    group_instance_id: str | None = wire(String, since=3, nullable_since=3, default=None)
    client_id: str = wire(String)
    client_host: str = wire(String)
    rebalance_timeout: int = wire(Int32, since=1, default=-1)
    session_timeout: int = wire(Int32)
    subscription: bytes = wire(Blob)
    assignment: bytes = wire(Blob)


@wired
class GroupMetadataValue:
    """v1 rebalance timeout · v2 time of the state · v3 static members (KIP-345) · v4 flexible."""

    VERSIONS, FLEXIBLE = range(5), 4

    protocol_type: str = wire(String)
    generation: int = wire(Int32)
    protocol: str | None = wire(String, nullable_since=0)
    leader: str | None = wire(String, nullable_since=0)
    current_state_timestamp: int = wire(Int64, since=2, default=-1)
    members: tuple[MemberMetadata, ...] = wire(Array(MemberMetadata), default=())


_GROUP_HEAD: Final = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp")
_MEMBER_FIELDS: Final = (
    *("member_id", "group_instance_id", "client_id", "client_host"),
    *("rebalance_timeout", "session_timeout", "subscription"),
)

Key = OffsetCommitKey | GroupMetadataKey
Value = OffsetCommitValue | GroupMetadataValue
V = TypeVar("V", OffsetCommitValue, GroupMetadataValue)

_OFFSET_TYPE: Final = 1
_GROUP_TYPE: Final = 2
_KEYS: Final[dict[int, type[Key]]] = {0: OffsetCommitKey, _OFFSET_TYPE: OffsetCommitKey, _GROUP_TYPE: GroupMetadataKey}


def encode_key(key: Key) -> bytes:
    """Type and fields."""
    kind = _OFFSET_TYPE if isinstance(key, OffsetCommitKey) else _GROUP_TYPE
    return _PREFIX.pack(kind) + codec(type(key), kind).encode(key)


def decode_key(raw: bytes) -> Key | None:
    """Decode a key; None for an unknown type. Raises DecodeError."""
    kind = _prefix(raw)
    key_type = _KEYS.get(kind)
    return None if key_type is None else codec(key_type, kind).decode(raw, _PREFIX.size)[0]


def encode_value(value: Value, version: int) -> bytes:
    """Version and fields."""
    return _PREFIX.pack(version) + codec(type(value), version).encode(value)


@cache
def offset_key_writer() -> Callable[[str, str], bytes]:
    """`encode_key` of an OffsetCommitKey from group and topic; `pack_partition` gives the rest."""
    return field_writer(OffsetCommitKey, _OFFSET_TYPE, _PREFIX.pack(_OFFSET_TYPE), only=("group", "topic"))


@cache
def group_key_writer() -> Callable[[str], bytes]:
    """`encode_key` of a GroupMetadataKey from its group."""
    return field_writer(GroupMetadataKey, _GROUP_TYPE, _PREFIX.pack(_GROUP_TYPE))


@cache
def group_writer(version: int) -> Callable[..., bytes]:
    """The head of `encode_value` of a GroupMetadataValue, from its fields up to the members, which are an array."""
    return field_writer(GroupMetadataValue, version, _PREFIX.pack(version), only=_GROUP_HEAD)


@cache
def member_writers(version: int) -> tuple[Callable[[str, str | None], bytes], Callable[..., bytes]]:
    """Encode a MemberMetadata up to its assignment: its ids, and the fields after them, which members often share."""
    ids, others = _MEMBER_FIELDS[:2], _MEMBER_FIELDS[2:]
    return field_writer(MemberMetadata, version, only=ids), field_writer(MemberMetadata, version, only=others)


@cache
def offset_writer(version: int) -> Callable[..., bytes]:
    """`encode_value` of an OffsetCommitValue from positional fields, in the order of the version."""
    return field_writer(OffsetCommitValue, version, _PREFIX.pack(version))


@cache
def offset_tail_writer() -> Callable[[int, bytes], bytes]:
    """The end of an OffsetCommitValue v4, which all offsets of a commit share: its time and the topic id."""
    return field_writer(OffsetCommitValue, OFFSET_VERSION, only=("commit_timestamp", "_tags"))


@cache
def metadata_writer() -> Callable[[str], bytes]:
    """The metadata in an OffsetCommitValue v4, between `pack_offset_head` and the tail."""
    return field_writer(OffsetCommitValue, OFFSET_VERSION, only=("metadata",))


def decode_value(message: type[V], raw: bytes) -> V:
    """Decode a value. Raises DecodeError, also for an unknown version."""
    version = _prefix(raw)
    if version not in message.VERSIONS:
        raise DecodeError(f"{message.__name__} of version {version}")
    return codec(message, version).decode(raw, _PREFIX.size)[0]


def _prefix(raw: bytes) -> int:
    if len(raw) < _PREFIX.size:
        raise DecodeError("a record of __consumer_offsets without its version")
    return int(_PREFIX.unpack_from(raw)[0])
