"""The members of a group: soft state, which is lost in a crash and rebuilt by `Group.loaded`.

Laws
    An instance id belongs to one member. `awaiting_join` counts the members whose JoinGroup waits, `supporters` the
    members that support each assignor, `record_bytes` what they take of a record: only the methods here change these.
    Only a member is the leader, and it stays leader while it is a member.
    A pending member has an id and nothing else: no vote, no assignment; it only holds a join phase open (KIP-394).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rota.coordinator.group.effects import JoinedMember, MemberValue
from rota.coordinator.group.events import InstanceId, Join, MemberId, Proto, Token
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember

UNARMED: Final = -1
CHAR_BYTES_MAX: Final = 4  # of a character in UTF-8
MEMBER_OVERHEAD_BYTES: Final = 24  # of a member in a record: two timeouts, and the lengths of its other fields


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    rebalance_ms: int
    session_ms: int
    protocols: tuple[Proto, ...]
    assignment: bytes = b""
    join: Token | None = None  # its JoinGroup that waits
    sync: Token | None = None  # its SyncGroup that waits
    is_new: bool = False  # its first JoinGroup is not answered yet
    deadline_ms: int = 0  # when its session ends; a heartbeat moves only this
    joined_ms: int = 0  # when its last JoinGroup came, in elapsed time
    armed_ms: int = UNARMED  # when its session timer fires: never later than the deadline

    @property
    def timer(self) -> str:
        return f"session:{self.member_id}"

    def alive(self, now_ms: int) -> None:
        """Restart its session. A new member has a longer deadline and keeps it."""
        if not self.is_new:
            self.deadline_ms = now_ms + self.session_ms

    def is_repeated_by(self, join: Join) -> bool:
        """Return whether this JoinGroup, of the same member, changes nothing of the member in a record but timeouts."""
        return (
            self.protocols == join.protocols
            and self.member_id == join.member_id
            and self.instance_id == join.instance_id
            and self.client_id == join.client_id
            and self.client_host == join.client_host
        )

    def metadata(self, protocol: str | None) -> bytes:
        """Return its subscription for that assignor; empty when it does not support it."""
        for proto in self.protocols:
            if proto.name == protocol:
                return proto.metadata
        return b""

    def as_event_member(self, wait_ms: int = -1) -> EventMember:
        """Return the member as the timeline names it."""
        return EventMember(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            wait_ms=wait_ms,
        )

    @property
    def text_bytes(self) -> int:
        """Its size in a group record in bytes, without subscription and assignment."""
        texts = (self.member_id, self.instance_id or "", self.client_id, self.client_host)
        return MEMBER_OVERHEAD_BYTES + sum(map(utf8_bytes, texts))

    @property
    def record_bytes(self) -> int:
        """Its maximum size in a group record with any assignor, without its assignment."""
        return self.text_bytes + max((len(proto.metadata) for proto in self.protocols), default=0)

    def vote(self, candidates: set[str]) -> str:
        """Return the assignor that it prefers among the candidates."""
        return next(proto.name for proto in self.protocols if proto.name in candidates)

    def as_joined(self, protocol: str | None) -> JoinedMember:
        return JoinedMember(self.member_id, self.instance_id, self.metadata(protocol))

    def as_value(self, protocol: str | None, *, assigned: bool) -> MemberValue:
        return MemberValue(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_ms=self.rebalance_ms,
            session_ms=self.session_ms,
            subscription=self.metadata(protocol),
            assignment=self.assignment if assigned else b"",
        )


def utf8_bytes(text: str) -> int:
    """Return the length of a text in a record."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def bytes_at_most(join: Join) -> int:
    """Return no less than what the sender of this JoinGroup can add to a record, as a member or as the leader."""
    member_id = join.member_id or join.fresh_id
    chars = 2 * len(member_id) + len(join.instance_id or "") + len(join.client_id) + len(join.client_host)
    metadata = 0
    for proto in join.protocols:
        chars += len(proto.name)
        metadata += len(proto.metadata)
    return MEMBER_OVERHEAD_BYTES + CHAR_BYTES_MAX * chars + metadata


def pending_timer(member_id: MemberId) -> str:
    """Return the key of the timer of a pending member id."""
    return f"pending:{member_id}"


def member_of(join: Join, member_id: MemberId) -> Member:
    """Return the new member of this JoinGroup; its request does not wait yet."""
    return Member(
        member_id=member_id,
        instance_id=join.instance_id,
        client_id=join.client_id,
        client_host=join.client_host,
        rebalance_ms=join.rebalance_ms,
        session_ms=join.session_ms,
        protocols=join.protocols,
        is_new=True,
    )


def event_member(join: Join, member_id: MemberId) -> EventMember:
    """Return the sender of this JoinGroup as the timeline names it."""
    return EventMember(
        member_id=member_id, instance_id=join.instance_id, client_id=join.client_id, client_host=join.client_host
    )


def member_from(value: MemberValue, protocol: str | None) -> Member:
    """Return the member as its group's record has it: with the one assignor that was chosen."""
    return Member(
        member_id=value.member_id,
        instance_id=value.instance_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_ms=value.session_ms if value.rebalance_ms == -1 else value.rebalance_ms,
        session_ms=value.session_ms,
        protocols=(Proto(protocol or "", value.subscription),),
        assignment=value.assignment,
    )


class Members:
    """The members of one group, in the order of joining."""

    __slots__ = (
        "awaiting_join",
        "by_id",
        "by_instance",
        "leader",
        "longest_id_bytes",
        "pending",
        "record_bytes",
        "supporters",
        "unsynced",
    )

    def __init__(self) -> None:
        self.by_id: dict[MemberId, Member] = {}
        self.by_instance: dict[InstanceId, MemberId] = {}
        self.pending: dict[MemberId, None] = {}  # an ordered set
        self.unsynced: dict[MemberId, None] = {}  # JoinGroup was answered, no SyncGroup yet
        self.supporters: dict[str, int] = {}
        self.record_bytes = 0
        self.longest_id_bytes = 0  # of the members that there were since the group had none
        self.awaiting_join = 0
        self.leader: MemberId | None = None

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.by_id.values())

    def get(self, member_id: MemberId) -> Member | None:
        return self.by_id.get(member_id)

    @property
    def has_all_members_joined(self) -> bool:
        """Return whether every member's JoinGroup waits and no pending member is expected."""
        return self.awaiting_join == len(self.by_id) and not self.pending

    @property
    def rebalance_ms(self) -> int:
        """How long a rebalance may take: the largest rebalance timeout of a member."""
        return max((member.rebalance_ms for member in self), default=0)

    def add(self, member: Member) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self.by_instance, "an instance is one member"
            self.by_instance[member.instance_id] = member.member_id
        self.leader = self.leader or member.member_id
        self.by_id[member.member_id] = member
        self.longest_id_bytes = max(self.longest_id_bytes, utf8_bytes(member.member_id))
        self._count(member, 1)
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: MemberId) -> Member | None:
        """Remove a member, pending or not. The caller answers its waiting requests, before or after."""
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        member = self.by_id.pop(member_id, None)
        if member is None:
            return None
        self._count(member, -1)
        if not self.by_id:
            self.longest_id_bytes = 0
        if member.join is not None:
            self.awaiting_join -= 1
        if member.instance_id is not None:
            del self.by_instance[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.by_id), None)
        return member

    def replace(self, old: Member, member_id: MemberId) -> Member:
        """Give a static instance a new member id; its position, votes and assignment stay."""
        assert old.instance_id is not None
        assert old.join is None, "answer its JoinGroup first"
        new = replace(old, member_id=member_id, sync=None, is_new=False, armed_ms=UNARMED)
        self.by_id = {new.member_id if member is old else key: member for key, member in self.by_id.items()}
        self.by_id[member_id] = new
        self.record_bytes += new.record_bytes - old.record_bytes
        self.longest_id_bytes = max(self.longest_id_bytes, utf8_bytes(member_id))
        self.by_instance[old.instance_id] = member_id
        if self.leader == old.member_id:
            self.leader = member_id
        if old.member_id in self.unsynced:
            del self.unsynced[old.member_id]
            self.unsynced[member_id] = None
        return new

    def update(self, member: Member, join: Join) -> None:
        """Update a member from its JoinGroup."""
        if member.protocols != join.protocols:
            self._count(member, -1)
            member.protocols = join.protocols
            self._count(member, 1)
        member.rebalance_ms, member.session_ms = join.rebalance_ms, join.session_ms

    def park_join(self, member: Member, token: Token) -> Token | None:
        """Let the member's JoinGroup wait; return the superseded one that waited already."""
        superseded, member.join = member.join, token
        if superseded is None:
            self.awaiting_join += 1
        return superseded

    def take_join(self, member: Member) -> Token | None:
        """Return the JoinGroup that waits, to be answered now."""
        token, member.join = member.join, None
        if token is not None:
            self.awaiting_join -= 1
        return token

    def supports(self, protocols: tuple[Proto, ...]) -> bool:
        """Return whether every member supports one of these assignors."""
        supporters, all_members = self.supporters, len(self.by_id)
        for proto in protocols:  # noqa: SIM110  # nearly every JoinGroup asks this: no generator
            if supporters.get(proto.name, 0) == all_members:
                return True
        return False

    def select_protocol(self) -> str:
        """Return the assignor with the most votes among those that all support; of a tie the one voted for first."""
        candidates = {name for name, count in self.supporters.items() if count == len(self.by_id)}
        if len(candidates) == 1:  # as nearly always: no vote needed
            return candidates.pop()
        return Counter(member.vote(candidates) for member in self).most_common(1)[0][0]

    def elect_leader(self) -> bool:
        """Keep the leader if it has joined, else take the first member that has. Return False when no member has."""
        leader = self.by_id.get(self.leader) if self.leader is not None else None
        if leader is None or leader.join is None:
            leader = next((member for member in self if member.join is not None), None)
        if leader is None:
            return False
        self.leader = leader.member_id
        return True

    def check(self, member_id: MemberId, instance_id: InstanceId | None) -> ErrorCode:
        """Return NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID: may this id speak for this instance (law G3)?"""
        if instance_id is not None:
            holder = self.by_instance.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.by_id else ErrorCode.UNKNOWN_MEMBER_ID

    def bytes_with(self, protocol: str | None) -> int:
        """Return the size of the members in a group record with that assignor, without their assignments."""
        return sum(member.text_bytes + len(member.metadata(protocol)) for member in self)

    def _count(self, member: Member, sign: int) -> None:
        self.record_bytes += sign * member.record_bytes
        for name in {proto.name for proto in member.protocols}:
            count = self.supporters.get(name, 0) + sign
            if count:
                self.supporters[name] = count
            else:
                del self.supporters[name]  # members may rejoin with ever new names
