"""Who is in a group right now: the soft member set, which a crash may take and `Group.loaded` rebuilds.

Laws
    An instance id names one member. `awaiting_join` counts the members whose JoinGroup is parked, and `supporters`
    the members that know each assignor: both are kept by the methods here and by nothing else.
    A member that is not there is never the leader; the leader stays leader while it is a member.
    A pending member has an id and nothing else: no vote, no place; it only holds a join phase open (KIP-394).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from rota.coordinator.group.effects import JoinedMember, MemberValue
from rota.coordinator.group.events import InstanceId, Join, MemberId, Proto, Token
from rota.protocol.errors import ErrorCode

UNARMED: Final = -1


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
    join: Token | None = None  # its parked JoinGroup
    sync: Token | None = None  # its parked SyncGroup
    is_new: bool = False  # has not been told its first generation yet
    deadline_ms: int = 0  # when its session ends; a heartbeat moves only this
    armed_ms: int = UNARMED  # when its session timer goes off: never later than the deadline

    @property
    def timer(self) -> str:
        return f"session:{self.member_id}"

    def alive(self, now_ms: int) -> None:
        """It was heard of: its session begins anew. A new member has longer than that and keeps it."""
        if not self.is_new:
            self.deadline_ms = now_ms + self.session_ms

    def metadata(self, protocol: str | None) -> bytes:
        """Its subscription for that assignor; empty when it does not know it."""
        for proto in self.protocols:
            if proto.name == protocol:
                return proto.metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
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


def pending_timer(member_id: MemberId) -> str:
    """The key of the timer of an id that was given and not yet come back with."""
    return f"pending:{member_id}"


def member_of(join: Join, member_id: MemberId) -> Member:
    """The new member that this JoinGroup makes; its request is not parked yet."""
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


def member_from(value: MemberValue, protocol: str | None) -> Member:
    """The member as its group's log knows it: with the one assignor that was chosen."""
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
    """The soft member set of one group, in the order of joining."""

    __slots__ = ("awaiting_join", "by_id", "by_instance", "leader", "pending", "supporters", "unsynced")

    def __init__(self) -> None:
        self.by_id: dict[MemberId, Member] = {}
        self.by_instance: dict[InstanceId, MemberId] = {}
        self.pending: dict[MemberId, None] = {}  # an ordered set
        self.unsynced: dict[MemberId, None] = {}  # told their generation, not yet heard with SyncGroup
        self.supporters: dict[str, int] = {}
        self.awaiting_join = 0
        self.leader: MemberId | None = None

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.by_id.values())

    def get(self, member_id: MemberId) -> Member | None:
        return self.by_id.get(member_id)

    @property
    def all_joined(self) -> bool:
        """Every member's JoinGroup is parked and nobody is expected to come back with its id."""
        return self.awaiting_join == len(self.by_id) and not self.pending

    @property
    def rebalance_ms(self) -> int:
        """How long a rebalance may take: the most that any member asks for."""
        return max((member.rebalance_ms for member in self), default=0)

    def add(self, member: Member) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self.by_instance, "an instance is one member"
            self.by_instance[member.instance_id] = member.member_id
        self.leader = self.leader or member.member_id
        self.by_id[member.member_id] = member
        self._count(member, 1)
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: MemberId) -> Member | None:
        """Forget a member, pending or not. Its parked requests are the caller's to answer, before or after."""
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        member = self.by_id.pop(member_id, None)
        if member is None:
            return None
        self._count(member, -1)
        if member.join is not None:
            self.awaiting_join -= 1
        if member.instance_id is not None:
            del self.by_instance[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.by_id), None)
        return member

    def replace(self, old: Member, member_id: MemberId) -> Member:
        """Give a static instance a new member id; the place, the votes and the assignment stay."""
        assert old.instance_id is not None
        assert old.join is None, "answer its parked JoinGroup first"
        new = replace(old, member_id=member_id, sync=None, is_new=False, armed_ms=UNARMED)
        self.by_id = {new.member_id if member is old else key: member for key, member in self.by_id.items()}
        self.by_id[member_id] = new
        self.by_instance[old.instance_id] = member_id
        if self.leader == old.member_id:
            self.leader = member_id
        if old.member_id in self.unsynced:
            del self.unsynced[old.member_id]
            self.unsynced[member_id] = None
        return new

    def update(self, member: Member, join: Join) -> None:
        """Take over what this JoinGroup says of a member."""
        if member.protocols != join.protocols:
            self._count(member, -1)
            member.protocols = join.protocols
            self._count(member, 1)
        member.rebalance_ms, member.session_ms = join.rebalance_ms, join.session_ms

    def park_join(self, member: Member, token: Token) -> Token | None:
        """Let the member's JoinGroup wait; the one that waited already is superseded."""
        superseded, member.join = member.join, token
        if superseded is None:
            self.awaiting_join += 1
        return superseded

    def take_join(self, member: Member) -> Token | None:
        """The parked JoinGroup, to be answered now."""
        token, member.join = member.join, None
        if token is not None:
            self.awaiting_join -= 1
        return token

    def supports(self, protocols: tuple[Proto, ...]) -> bool:
        """Is there one of these assignors that every member knows?"""
        supporters, all_members = self.supporters, len(self.by_id)
        return any(supporters.get(proto.name, 0) == all_members for proto in protocols)

    def select_protocol(self) -> str:
        """The assignor with the most votes among those that all know; a tie goes to the one voted for first."""
        candidates = {name for name, count in self.supporters.items() if count == len(self.by_id)}
        if len(candidates) == 1:  # as nearly always: nobody need be asked
            return candidates.pop()
        return Counter(member.vote(candidates) for member in self).most_common(1)[0][0]

    def elect_leader(self) -> bool:
        """Keep the leader if it has joined, else take the first that has. False when nobody has."""
        leader = self.by_id.get(self.leader) if self.leader is not None else None
        if leader is None or leader.join is None:
            leader = next((member for member in self if member.join is not None), None)
        if leader is None:
            return False
        self.leader = leader.member_id
        return True

    def check(self, member_id: MemberId, instance_id: InstanceId | None) -> ErrorCode:
        """May this id speak for this instance (law G3)? UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or NONE."""
        if instance_id is not None:
            holder = self.by_instance.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.by_id else ErrorCode.UNKNOWN_MEMBER_ID

    def _count(self, member: Member, one: int) -> None:
        for name in {proto.name for proto in member.protocols}:
            count = self.supporters.get(name, 0) + one
            if count:
                self.supporters[name] = count
            else:
                del self.supporters[name]  # members may rejoin with ever new names
