"""The results of a group's step: the records and replies that its effects carry, and the list that collects them.

A record is the whole value of its key; `value=None` is a tombstone. The classes are slotted and not frozen: freezing
doubles the cost of making one, and nothing changes them.

Law
    Effects keep the order in which they were decided: an Append stands before the replies that need it.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from rota.coordinator.group.events import (
    NO_MEMBER,
    InstanceId,
    MemberId,
    OffsetRecord,
    OffsetRecords,
    OffsetValue,
    Token,
)
from rota.coordinator.runtime.contract import (
    Append,
    AppendAndReply,
    AppendInTransaction,
    Arm,
    Disarm,
    Effect,
    Note,
    Reply,
)
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

__all__ = [
    "Append",
    "AppendAndReply",
    "AppendInTransaction",
    "Arm",
    "Body",
    "Disarm",
    "Effect",
    "GroupRecord",
    "GroupValue",
    "Joined",
    "JoinedMember",
    "LeaveResult",
    "MemberValue",
    "Note",
    "OffsetRecord",
    "OffsetRecords",
    "OffsetValue",
    "OffsetsDropped",
    "Record",
    "Reply",
    "Step",
    "Synced",
    "refuse",
]

# ---- records: the durable state


@dataclass(slots=True, kw_only=True)
class MemberValue:
    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    rebalance_ms: int
    session_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(slots=True, kw_only=True)
class GroupValue:
    """The durable state of a group: one generation with its members. Written as GroupMetadataValue v3."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: MemberId | None
    state_ms: int  # currentStateTimestamp
    members: tuple[MemberValue, ...] = ()


@dataclass(slots=True)
class GroupRecord:
    group_id: str
    value: GroupValue | None


Record = GroupRecord | OffsetRecord | OffsetRecords

# ---- replies


@dataclass(slots=True)
class JoinedMember:
    member_id: MemberId
    instance_id: InstanceId | None
    metadata: bytes


@dataclass(slots=True, kw_only=True)
class Joined:
    """The body of a JoinGroup reply, refusals included (`error`)."""

    member_id: MemberId
    error: ErrorCode = ErrorCode.NONE
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: MemberId = NO_MEMBER
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(slots=True, kw_only=True)
class Synced:
    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(slots=True)
class LeaveResult:
    """(member id, instance id, error) per leaving member, in request order; `error` is that of the whole request."""

    error: ErrorCode
    members: tuple[tuple[MemberId, InstanceId | None, ErrorCode], ...] = ()


@dataclass(slots=True)
class OffsetsDropped:
    error: ErrorCode
    partitions: tuple[tuple[str, int, ErrorCode], ...] = ()


Body = Joined | Synced | LeaveResult | OffsetsDropped | ErrorCode  # Heartbeat, Commit, Remove: the bare code

# ---- effects


def refuse(token: Token, body: Body) -> Reply:
    """Return a reply that promises nothing durable, so that it may leave at once."""
    return Reply(token, body, when_durable=False)


@dataclass(slots=True)
class Step:
    """One step of a group: the times at which it happens, and its effects."""

    now_ms: int  # elapsed time, for deadlines
    wall_ms: int  # since the epoch, for what is stored and retained
    effects: list[Effect] = field(default_factory=list)

    def append(self, record: Record) -> None:
        self.effects.append(Append(record))

    def reply(self, token: Token, body: Body) -> None:
        """Answer from the group's state: the reply waits until that state is durable."""
        self.effects.append(Reply(token, body))

    def refuse(self, token: Token, body: Body) -> None:
        self.effects.append(refuse(token, body))

    def arm(self, key: str, at_ms: int) -> None:
        self.effects.append(Arm(key, at_ms))

    def disarm(self, key: str) -> None:
        self.effects.append(Disarm(key))

    def note(self, event: str, fields: dict[str, object], **timeline: Any) -> None:
        """Add to the timeline; `timeline` are fields of a GroupEvent that the log does not need."""
        self.effects.append(Note(event, fields, timeline))
