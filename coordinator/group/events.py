"""The events of a group: requests, timers, and events for all groups. Times are passed beside an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NewType

from rota.coordinator.runtime.contract import TimerFired, Token
from rota.protocol.dataclass import dataclass

if TYPE_CHECKING:
    MemberId = NewType("MemberId", str)
    InstanceId = NewType("InstanceId", str)
else:
    MemberId = InstanceId = str  # a call of a NewType is a call of a Python function, once for each request

NO_MEMBER: Final = MemberId("")  # a member without an id yet; no leader

__all__ = [
    "NO_MEMBER",
    "Commit",
    "DeleteGroup",
    "DropOffsets",
    "Event",
    "ExpireOffsets",
    "Heartbeat",
    "InstanceId",
    "Join",
    "Leave",
    "LeavingMember",
    "MemberId",
    "OffsetRecord",
    "OffsetRecords",
    "OffsetValue",
    "Proto",
    "Request",
    "Sync",
    "TimerFired",
    "Token",
    "TopicsDeleted",
]


@dataclass(slots=True)
class Proto:
    """An assignor that a member supports, with its subscription as the member encoded it."""

    name: str
    metadata: bytes


@dataclass(slots=True, kw_only=True)
class Join:
    """JoinGroup. `fresh_id` is the id that a member without one gets (clientId-UUID); the API draws it."""

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
    initial_delay_min_ms: int = 0  # the least initial delay: clients that start together make one generation


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
class LeavingMember:
    member_id: MemberId  # empty: an administrator removes the member of this instance
    instance_id: InstanceId | None
    reason: str | None = None


@dataclass(slots=True)
class Leave:
    token: Token
    members: tuple[LeavingMember, ...]


@dataclass(slots=True)
class OffsetValue:
    """A committed offset. Written as OffsetCommitValue v4, or v1 when `expire_ms` is given."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int | None = None
    topic_id: bytes | None = None


@dataclass(slots=True)
class OffsetRecord:
    group_id: str
    topic: str
    partition: int
    value: OffsetValue | None


@dataclass(slots=True)
class OffsetRecords:
    """The records of one topic in a commit, at least one; `values` are OffsetCommitValues as they are written."""

    group_id: str
    topic: str
    partitions: list[int]
    values: list[bytes]

    @property
    def value(self) -> list[bytes]:
        """The value of the record; every record has this field, where None means a tombstone."""
        return self.values


@dataclass(slots=True, kw_only=True)
class Commit:
    """OffsetCommit of valid partitions; the API refuses unknown topics and metadata that is too long."""

    token: Token
    member_id: MemberId
    instance_id: InstanceId | None
    generation: int
    records: Sequence[OffsetRecord | OffsetRecords]  # with values; their time is that of the request
    version: int = 0  # of the request


@dataclass(slots=True)
class TransactionalCommit:
    """TxnOffsetCommit of valid partitions: the offsets count when the producer's transaction commits."""

    token: Token
    member_id: MemberId
    instance_id: InstanceId | None
    generation: int
    records: Sequence[OffsetRecord]  # with values
    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class DropOffsets:
    """OffsetDelete: forget these partitions, unless the group subscribes to their topic."""

    token: Token
    partitions: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class DeleteGroup:
    """DeleteGroups."""

    token: Token


@dataclass(slots=True)
class ExpireOffsets:
    """Remove offsets past their retention, and an Empty group that has no offsets. Sent periodically."""

    retention_ms: int


@dataclass(slots=True)
class TopicsDeleted:
    """Topics were deleted: remove the offsets committed for them until then. A topic of the same name may be new."""

    topic_ids: Mapping[str, frozenset[bytes]]  # by name; a name may have been deleted more than once
    deleted_ms: int  # for offsets that do not know their topic id


Request = Join | Sync | Heartbeat | Leave | Commit | TransactionalCommit | DropOffsets | DeleteGroup
Event = Request | ExpireOffsets | TopicsDeleted | TimerFired
