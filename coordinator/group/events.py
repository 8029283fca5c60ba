"""What comes into a group. Times come beside the event, as `now_ms` and `wall_ms`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NewType

Token = NewType("Token", int)  # names one waiting request; the shell knows whose
MemberId = NewType("MemberId", str)
InstanceId = NewType("InstanceId", str)

NOBODY: Final = MemberId("")  # a member without an id yet; no leader


@dataclass(slots=True)
class Proto:
    """One assignor that a member knows, with its subscription as the member encoded it."""

    name: str
    metadata: bytes


@dataclass(slots=True, kw_only=True)
class Join:
    """JoinGroup. `fresh_id` is the id to give if the member has none (clientId-UUID); the shell draws it."""

    token: Token
    member_id: MemberId
    instance_id: InstanceId | None
    fresh_id: MemberId
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocol_type: str
    protocols: tuple[Proto, ...]
    requires_known_id: bool  # request version 4 and later (KIP-394)
    can_skip_assignment: bool  # request version 9 and later (KIP-814)
    reason: str | None = None


@dataclass(slots=True, kw_only=True)
class Sync:
    """SyncGroup. `protocol_type` and `protocol` are None where the request version has none."""

    token: Token
    member_id: MemberId
    instance_id: InstanceId | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: tuple[tuple[MemberId, bytes], ...]


@dataclass(slots=True)
class Heartbeat:
    token: Token
    member_id: MemberId
    instance_id: InstanceId | None
    generation: int


@dataclass(slots=True)
class Leaver:
    member_id: MemberId  # empty: removal by instance id, an administrator's right
    instance_id: InstanceId | None
    reason: str | None = None


@dataclass(slots=True)
class Leave:
    token: Token
    leavers: tuple[Leaver, ...]


@dataclass(slots=True)
class OffsetToCommit:
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: bytes | None = None  # 16 bytes
    expire_ms: int | None = None  # absolute; only when the client gave a retention time


@dataclass(slots=True, kw_only=True)
class Commit:
    """OffsetCommit of valid partitions; too long metadata and unknown topics were answered by the shell."""

    token: Token
    member_id: MemberId
    instance_id: InstanceId | None
    generation: int
    offsets: tuple[OffsetToCommit, ...]


@dataclass(slots=True)
class DropOffsets:
    """OffsetDelete: forget these partitions, unless the group subscribes to their topic."""

    token: Token
    partitions: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class Remove:
    """DeleteGroups."""

    token: Token


@dataclass(slots=True)
class ExpireOffsets:
    """The periodic look for offsets past their retention; also lets an Empty group without offsets go."""

    retention_ms: int


@dataclass(slots=True)
class TopicsGone:
    """Topics were deleted: their offsets go."""

    topics: frozenset[str]


@dataclass(slots=True)
class Expired:
    """An armed timer went off."""

    key: str


Event = Join | Sync | Heartbeat | Leave | Commit | DropOffsets | Remove | ExpireOffsets | TopicsGone | Expired
