"""What comes out of a group: records to append, replies, timers and lines for its timeline.

Records are whole values (STYLE 4): a later one for the same key makes every earlier one superfluous.
`value=None` is a tombstone. Slotted and not frozen: freezing doubles the cost of making one, and nobody changes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rota.coordinator.group.events import NOBODY, InstanceId, MemberId, Token
from rota.protocol.errors import ErrorCode

# ---- records: the hard state


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
    """The whole durable truth about membership: one generation. Becomes GroupMetadataValue v3."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: MemberId | None
    state_ms: int  # currentStateTimestamp
    members: tuple[MemberValue, ...] = ()


@dataclass(slots=True)
class OffsetValue:
    """One committed offset. Becomes OffsetCommitValue v4, or v1 when `expire_ms` is given."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int | None = None
    topic_id: bytes | None = None


@dataclass(slots=True)
class GroupRecord:
    group_id: str
    value: GroupValue | None


@dataclass(slots=True)
class OffsetRecord:
    group_id: str
    topic: str
    partition: int
    value: OffsetValue | None


Record = GroupRecord | OffsetRecord

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
    leader: MemberId = NOBODY
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(slots=True, kw_only=True)
class Synced:
    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(slots=True)
class Left:
    """One (member id, instance id, error) for each leaver, in the order asked; `error` for the whole request."""

    error: ErrorCode
    members: tuple[tuple[MemberId, InstanceId | None, ErrorCode], ...] = ()


@dataclass(slots=True)
class OffsetsDropped:
    error: ErrorCode
    partitions: tuple[tuple[str, int, ErrorCode], ...] = ()


Body = Joined | Synced | Left | OffsetsDropped | ErrorCode  # Heartbeat, Commit, Remove: the bare code

# ---- effects


@dataclass(slots=True)
class Append:
    record: Record


@dataclass(slots=True)
class Reply:
    token: Token
    body: Body
    when_durable: bool = True


@dataclass(slots=True)
class Arm:
    """Set (or move) the timer of that key. A group's keys are its own: the shell adds the group id."""

    key: str
    at_ms: int


@dataclass(slots=True)
class Disarm:
    key: str


@dataclass(slots=True)
class Note:
    """A line of the group's timeline and of the log: Kafka's own terms in `event`, the rest as fields (R27)."""

    event: str
    fields: dict[str, object] = field(default_factory=dict)


Effect = Append | Reply | Arm | Disarm | Note


def refuse(token: Token, body: Body) -> Reply:
    """A refusal promises nothing durable, so it may leave at once."""
    return Reply(token, body, when_durable=False)
