"""The consumer protocol: subscriptions in JoinGroup's metadata and assignments in SyncGroup, versions 0-3.

v1 owned partitions (KIP-429) · v2 generation of the owned partitions (KIP-792) · v3 rack (KIP-881)

Laws
    An int16 version comes first. A version above VERSION_MAX is decoded as VERSION_MAX, because new versions only
    append fields; trailing bytes are ignored for the same reason.
    The coordinator decodes subscriptions only to know the topics of a group; members get each other's bytes unchanged.
"""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from rota.protocol.compiler import codec
from rota.protocol.wire import NEVER, Array, Blob, DecodeError, Int32, String, wire, wired

PROTOCOL_TYPE: Final = "consumer"  # the protocol type of groups of consumers
VERSION_MAX: Final = 3

_PREFIX: Final = struct.Struct(">h")


@wired
class TopicPartition:
    """Partitions of one topic."""

    topic: str = wire(String)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class Subscription:
    """The topics of a member and, for cooperative assignors, its owned partitions and their generation."""

    VERSIONS, FLEXIBLE = range(VERSION_MAX + 1), NEVER

    topics: tuple[str, ...] = wire(Array(String), default=())
    user_data: bytes | None = wire(Blob, nullable_since=0, default=None)
    owned_partitions: tuple[TopicPartition, ...] = wire(Array(TopicPartition), since=1, default=())
    generation_id: int = wire(Int32, since=2, default=-1)
    rack_id: str | None = wire(String, since=3, nullable_since=3, default=None)


@wired
class Assignment:
    """The partitions that a member is assigned."""

    VERSIONS, FLEXIBLE = range(VERSION_MAX + 1), NEVER

    assigned_partitions: tuple[TopicPartition, ...] = wire(Array(TopicPartition), default=())
    user_data: bytes | None = wire(Blob, nullable_since=0, default=None)


M = TypeVar("M", Subscription, Assignment)


def encode_subscription(subscription: Subscription, version: int = VERSION_MAX) -> bytes:
    """Version and body, for JoinGroup."""
    return _PREFIX.pack(version) + codec(Subscription, version).encode(subscription)


def decode_subscription(raw: bytes) -> Subscription:
    """Raises DecodeError."""
    return _decode(Subscription, raw)


def encode_assignment(assignment: Assignment, version: int = VERSION_MAX) -> bytes:
    """Version and body, for SyncGroup."""
    return _PREFIX.pack(version) + codec(Assignment, version).encode(assignment)


def decode_assignment(raw: bytes) -> Assignment:
    """Raises DecodeError."""
    return _decode(Assignment, raw)


def _decode(message: type[M], raw: bytes) -> M:
    if len(raw) < _PREFIX.size:
        raise DecodeError("no version before the consumer protocol")
    (version,) = _PREFIX.unpack_from(raw)
    if version < 0:
        raise DecodeError(f"consumer protocol of version {version}")
    return codec(message, min(version, VERSION_MAX)).decode(raw, _PREFIX.size)[0]
