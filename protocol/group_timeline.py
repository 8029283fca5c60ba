"""Keys and values of the records in `__rota_group_timeline`: the events of each group, versioned (docs/TIMELINE.md).

A key is an int16 version, the group and a slot; a value is an int16 version and one event. An event is written in slot
`sequence % EVENTS_PER_GROUP_MAX`, so that compaction keeps the last events of a group. A record without a value
(a tombstone) deletes its slot.

Laws
    A later version of the value only adds tagged fields: `decode_value` reads it as VALUE_VERSION and skips them.
    A key of another version is written by a newer broker: it decodes to None, and the reader skips the record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Final

from rota.protocol.compiler import codec, field_writer
from rota.protocol.wire import NEVER, Array, DecodeError, Int16, Int32, Int64, String, wire, wired

TOPIC: Final = "__rota_group_timeline"
EVENTS_PER_GROUP_MAX: Final = 256
KEY_VERSION: Final = 0
VALUE_VERSION: Final = 0
NONE: Final = -1  # of a number that an event does not have

_PREFIX: Final = struct.Struct(">h")
pack_slot: Final = struct.Struct(">i").pack  # the end of a TimelineKey
_SEQUENCE: Final = struct.Struct(">q")  # the first field of every version of a value


class EventType(IntEnum):
    """The type of an event. The comments name the fields of each type."""

    MEMBER_JOINED = 1  # members, client_reason
    STATIC_MEMBER_REPLACED = 2  # members: the new one, then the one that it replaced
    STATIC_MEMBER_KEPT = 3  # members: the replacement needed no rebalance
    MEMBER_REFUSED = 4  # members, operation, error_code, count, reason
    REBALANCE_STARTED = 5  # trigger, members (that triggered it), previous_state, reason, client_reason
    LEADER_ELECTED = 6  # leader, members: the new leader, then the old one
    NOBODY_REJOINED = 7
    MEMBERS_NOT_REJOINED = 8  # members: removed, their JoinGroup did not come in time
    GENERATION_STARTED = 9  # duration_ms of the wait for joins; members: the last to join, with wait_ms; leader
    ASSIGNED = 10  # duration_ms of the wait for the assignment; members: the leader, if there is one; moves
    MEMBERS_NOT_SYNCED = 11  # members: removed, their SyncGroup did not come in time
    EMPTIED = 12  # duration_ms of the wait for joins
    MEMBER_LEFT = 13  # members, client_reason
    MEMBER_EXPIRED = 14  # members, reason
    REQUESTS_REFUSED = 15  # members: the sender, then who has its instance; operation, error_code, count, reason
    LOADED = 16  # a coordinator read the group from its log: after a start, or in the place of another broker
    OFFSETS_EXPIRED = 17  # count
    DELETED = 18  # count of offsets
    UPGRADED = 19  # a classic group with members became one of the consumer protocol
    DOWNGRADED = 20  # the reverse
    RECONCILIATION_STARTED = 21  # count; members: those of the consumer protocol that have to revoke partitions
    RECONCILED = 22  # duration_ms since the target assignment; members: those that revoked, slowest first, with wait_ms
    MEMBERS_NOT_REVOKED = 23  # members: removed, they kept partitions that they had to revoke; reason


_ASSIGNED: Final = EventType.ASSIGNED  # bound once: every event is asked for
_ENDS: Final = (EventType.RECONCILED, EventType.EMPTIED, EventType.DOWNGRADED)


class Trigger:
    """Why a rebalance started: the values of `trigger`. Readers accept others: a newer broker may write them."""

    MEMBER_JOINED: Final = "member-joined"
    MEMBER_LEFT: Final = "member-left"
    MEMBER_EXPIRED: Final = "member-expired"
    METADATA_CHANGED: Final = "metadata-changed"  # a member joined again with another subscription
    TOPICS_CHANGED: Final = "topics-changed"  # topics that members of the consumer protocol subscribe to
    LEADER_REJOINED: Final = "leader-rejoined"  # for new partitions or topics, or cooperatively
    STATIC_MEMBER_REPLACED: Final = "static-member-replaced"
    REVOCATION_TIMEOUT: Final = "revocation-timeout"  # a member kept partitions that it had to revoke (KIP-848)
    JOIN_TIMEOUT: Final = "join-timeout"  # a classic member of a group of the consumer protocol did not join again
    SYNC_TIMEOUT: Final = "sync-timeout"
    ASSIGNMENT_TOO_LARGE: Final = "assignment-too-large"
    LOADED_UNASSIGNED: Final = "loaded-unassigned"  # the old coordinator stopped before the assignment was written
    LOADED_OVER_CAPACITY: Final = "loaded-over-capacity"


@wired
class TimelineKey:
    """The key, after its version."""

    VERSIONS, FLEXIBLE = range(KEY_VERSION + 1), NEVER

    group: str = wire(String)
    slot: int = wire(Int32)


@wired
class EventMember:
    """A member that an event is about. Empty texts: not known.

    `wait_ms` is how long the others waited for its join, or for it to revoke partitions.
    """

    member_id: str = wire(String)
    instance_id: str | None = wire(String, nullable_since=0, default=None)
    client_id: str = wire(String, default="")
    client_host: str = wire(String, default="")
    wait_ms: int = wire(Int64, default=NONE)


@wired
class MovedPartitions:
    """Partitions of one topic."""

    topic: str = wire(String)
    partitions: tuple[int, ...] = wire(Array(Int32), default=())


@wired
class Move:
    """The changes of an assignment for one member. The counts are exact; the lists may be truncated."""

    member_id: str = wire(String)
    gained_count: int = wire(Int32, default=0)
    lost_count: int = wire(Int32, default=0)
    kept_count: int = wire(Int32, default=0)
    gained: tuple[MovedPartitions, ...] = wire(Array(MovedPartitions), default=())
    lost: tuple[MovedPartitions, ...] = wire(Array(MovedPartitions), default=())
    kept: tuple[MovedPartitions, ...] = wire(Array(MovedPartitions), default=())


@wired
class GroupEvent:
    """One event of a group. A field that its type does not have is empty, null or -1; times are ms since the epoch."""

    VERSIONS, FLEXIBLE = range(VALUE_VERSION + 1), 0

    sequence: int = wire(Int64, default=NONE)  # of the group: one more than that of the event before
    time_ms: int = wire(Int64)
    type: int = wire(Int16)  # EventType; a newer broker may write others
    broker: int = wire(Int32, default=NONE)  # the coordinator that decided it
    generation: int = wire(Int32, default=NONE)
    state: str = wire(String, default="")  # of the group after the event, in Kafka's words
    previous_state: str = wire(String, default="")
    trigger: str = wire(String, default="")
    reason: str = wire(String, default="")  # the coordinator's, in Kafka's words
    client_reason: str | None = wire(String, nullable_since=0, default=None)  # the client's own (KIP-800)
    operation: str = wire(String, default="")  # of a refused request
    error_code: int = wire(Int16, default=0)
    count: int = wire(Int64, default=NONE)
    duration_ms: int = wire(Int64, default=NONE)
    protocol_type: str = wire(String, default="")
    protocol: str = wire(String, default="")  # the assignor
    leader: str = wire(String, default="")  # a member id
    member_count: int = wire(Int32, default=NONE)  # of the group; `members` may be cut short
    partition_count: int = wire(Int32, default=NONE)  # assigned in all, where the protocol is known
    members: tuple[EventMember, ...] = wire(Array(EventMember), default=())
    moves: tuple[Move, ...] = wire(Array(Move), default=())


def is_end_of_rebalance(event: GroupEvent) -> bool:
    """Return whether a rebalance ends with this event: the members have their assignments, or none is left.

    In a group of the consumer protocol members may have to revoke partitions after ASSIGNED; RECONCILED follows. What
    is still to do when the group becomes a classic one is a rebalance of that.
    """
    if event.type == _ASSIGNED:
        return event.state != "Reconciling"
    return event.type in _ENDS


def slot_of(sequence: int) -> int:
    """Return the slot of an event."""
    return sequence % EVENTS_PER_GROUP_MAX


def encode_key(key: TimelineKey) -> bytes:
    """Version and fields."""
    return _PREFIX.pack(KEY_VERSION) + codec(TimelineKey, KEY_VERSION).encode(key)


@cache
def key_lead_writer() -> Callable[[str], bytes]:
    """`encode_key` of a group without its slot; `pack_slot` gives the rest."""
    return field_writer(TimelineKey, KEY_VERSION, _PREFIX.pack(KEY_VERSION), only=("group",))


def decode_key(raw: bytes) -> TimelineKey | None:
    """Decode a key; None for another version. Raises DecodeError."""
    if _version(raw) != KEY_VERSION:
        return None
    return codec(TimelineKey, KEY_VERSION).decode(raw, _PREFIX.size)[0]


def encode_value(event: GroupEvent) -> bytes:
    """Version and fields."""
    return _value_writer()(event)


@cache
def _value_writer() -> Callable[[GroupEvent], bytes]:
    lead, encode = _PREFIX.pack(VALUE_VERSION), codec(GroupEvent, VALUE_VERSION).encode
    return lambda event: lead + encode(event)


def decode_value(raw: bytes) -> GroupEvent:
    """Decode an event. Raises DecodeError."""
    version = _version(raw)
    if version < 0:
        raise DecodeError(f"GroupEvent of version {version}")
    return codec(GroupEvent, min(version, VALUE_VERSION)).decode(raw, _PREFIX.size)[0]


def sequence_of(raw: bytes) -> int:
    """Return the sequence of an encoded event, without decoding the rest. Raises DecodeError."""
    if len(raw) < _PREFIX.size + _SEQUENCE.size:
        raise DecodeError("an event without its sequence")
    return int(_SEQUENCE.unpack_from(raw, _PREFIX.size)[0])


def _version(raw: bytes) -> int:
    if len(raw) < _PREFIX.size:
        raise DecodeError(f"a record of {TOPIC} without its version")
    return int(_PREFIX.unpack_from(raw)[0])
