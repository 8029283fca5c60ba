"""A test that reads like a conversation: `>>` goes in, `<<` must come out next; nothing may be left over.

Lines of the timeline are kept apart, in `notes`, so that only the tests which are about them have to name them.
"""

from __future__ import annotations

from dataclasses import replace

from tests.property.group_world import step

from rota.coordinator.group.effects import (
    Append,
    AppendAndReply,
    Arm,
    Body,
    Disarm,
    Effect,
    GroupRecord,
    GroupValue,
    Joined,
    JoinedMember,
    MemberValue,
    Note,
    OffsetRecord,
    OffsetValue,
    Reply,
    Synced,
)
from rota.coordinator.group.events import (
    Commit,
    DeleteGroup,
    Event,
    Heartbeat,
    InstanceId,
    Join,
    Leave,
    LeavingMember,
    MemberId,
    Proto,
    Sync,
    TimerFired,
    Token,
    TopicsDeleted,
)
from rota.coordinator.group.machine import Group
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

GROUP = "g"
SESSION_MS, REBALANCE_MS = 10_000, 60_000
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"  # topic t
RANGE = (Proto("range", SUBSCRIPTION),)
PROMPT = GroupConfig(initial_rebalance_delay_ms=0)


class Script:
    """A conversation with one group. Starts at time 0 with a new group and no initial delay."""

    def __init__(self, group: Group | None = None, *, config: GroupConfig = PROMPT, now_ms: int = 0) -> None:
        self.group = Group(GROUP, config) if group is None else group
        self.now_ms = now_ms
        self.out: list[Effect] = []
        self.notes: list[Note] = []
        self.log: list[GroupRecord | OffsetRecord] = []

    def __rshift__(self, event: Event) -> Script:
        self._nothing_left()
        self._take(step(self.group, self._at_this_time(event), self.now_ms))
        return self

    def __lshift__(self, effect: Effect) -> Script:
        assert self.out, f"expected {effect}, but nothing more came out"
        assert self.out.pop(0) == effect
        return self

    def __bool__(self) -> bool:
        self._nothing_left()
        return True

    def after(self, ms: int) -> Script:
        self.now_ms += ms
        return self

    def does(self, event: Event) -> Script:
        """Step, and let everything pass that comes out: it is another test's subject."""
        _ = self >> event
        self.out.clear()
        return self

    def includes(self, effect: Effect) -> Script:
        """This came out just now, among other things."""
        assert effect in self.out, self.out
        self.out.clear()
        return self

    def is_in(self, state: GroupState, generation: int) -> Script:
        assert (self.group.state, self.group.generation) == (state, generation)
        return self

    def emitted(self, event: str, **fields: object) -> Script:
        """A note of that text came since the last look, with (at least) these fields."""
        found, self.notes = self.notes, []
        assert any(note.event == event and fields.items() <= note.fields.items() for note in found), found
        return self

    def reloaded(self, config: GroupConfig | None = None) -> Script:
        """The same conversation after a crash: a new group from the whole log; what `loaded` says comes out next."""
        self._nothing_left()
        again = Script(Group(GROUP, config or self.group.config), now_ms=self.now_ms)
        for record in self.log:
            again.group.replay(record)
        again.log = list(self.log)
        again._take(again.group.loaded(self.now_ms))
        return again

    def bodies(self) -> dict[int, Body]:
        """What was answered just now, by token."""
        found = {int(effect.token): effect.body for effect in self.out if isinstance(effect, Reply)}
        self.out.clear()
        return found

    def _at_this_time(self, event: Event) -> Event:
        """What is committed has the time of the conversation."""
        if not isinstance(event, Commit):
            return event
        values = [(record, record.value) for record in event.records]
        records = [replace(record, value=replace(value, commit_ms=self.now_ms)) for record, value in values if value]
        return replace(event, records=records)

    def _take(self, effects: list[Effect]) -> None:
        self.notes += [effect for effect in effects if isinstance(effect, Note)]
        self.out = [single for effect in effects if not isinstance(effect, Note) for single in one_by_one(effect)]
        self.log += [effect.record for effect in self.out if isinstance(effect, Append)]

    def _nothing_left(self) -> None:
        assert not self.out, f"unexpected: {self.out}"


def one_by_one(effect: Effect) -> list[Effect]:
    """The appends and the reply that an AppendAndReply stands for; any other effect as it is."""
    if isinstance(effect, AppendAndReply):
        return [*map(Append, effect.records), Reply(effect.token, effect.body)]
    return [effect]


# ---- events


def join(
    token: int,
    member: str = "",
    *,
    new: str = "new",
    instance: str | None = None,
    protocols: tuple[Proto, ...] = RANGE,
    protocol_type: str = "consumer",
    session_ms: int = SESSION_MS,
    rebalance_ms: int = REBALANCE_MS,
    known: bool = False,
    skip: bool = False,
    reason: str | None = None,
    initial_delay_min_ms: int = 0,
) -> Join:
    """A JoinGroup of `member`; of a new one, to be called `new`, when there is none. `known`: it needs an id first."""
    return Join(
        token=Token(token),
        member_id=MemberId(member),
        instance_id=None if instance is None else InstanceId(instance),
        fresh_id=MemberId(new),
        client_id="client",
        client_host="/127.0.0.1",
        session_ms=session_ms,
        rebalance_ms=rebalance_ms,
        protocol_type=protocol_type,
        protocols=protocols,
        requires_known_id=known,
        can_skip_assignment=skip,
        reason=reason,
        initial_delay_min_ms=initial_delay_min_ms,
    )


def sync(
    token: int,
    member: str,
    generation: int,
    parts: dict[str, bytes] | None = None,
    *,
    instance: str | None = None,
    protocol_type: str | None = None,
    protocol: str | None = None,
) -> Sync:
    return Sync(
        token=Token(token),
        member_id=MemberId(member),
        instance_id=None if instance is None else InstanceId(instance),
        generation=generation,
        protocol_type=protocol_type,
        protocol=protocol,
        assignments=tuple((MemberId(name), part) for name, part in (parts or {}).items()),
    )


def heartbeat(token: int, member: str, generation: int, *, instance: str | None = None) -> Heartbeat:
    return Heartbeat(Token(token), MemberId(member), None if instance is None else InstanceId(instance), generation)


def leave(token: int, *members: str, reason: str | None = None) -> Leave:
    return Leave(Token(token), tuple(LeavingMember(MemberId(member), None, reason) for member in members))


def identity(member: str, instance: str | None, reason: str | None = None) -> LeavingMember:
    return LeavingMember(MemberId(member), None if instance is None else InstanceId(instance), reason)


def commit(
    token: int,
    member: str = "",
    generation: int = -1,
    *,
    instance: str | None = None,
    topic: str = "t",
    offset: int = 7,
) -> Commit:
    return Commit(
        token=Token(token),
        member_id=MemberId(member),
        instance_id=None if instance is None else InstanceId(instance),
        generation=generation,
        records=(OffsetRecord(GROUP, topic, 0, OffsetValue(offset, -1, "", -1)),),
    )


def topics_deleted(*topics: str, ids: frozenset[bytes] = frozenset(), at_ms: int = 10**15) -> TopicsDeleted:
    return TopicsDeleted(dict.fromkeys(topics, ids), at_ms)


def fires(key: str) -> TimerFired:
    return TimerFired(key)


# ---- effects


def arm(key: str, at_ms: int) -> Arm:
    return Arm(key, at_ms)


def disarm(key: str) -> Disarm:
    return Disarm(key)


def reply(token: int, body: Body) -> Reply:
    return Reply(Token(token), body)


def refuse(token: int, body: Body) -> Reply:
    return Reply(Token(token), body, when_durable=False)


def join_refused(token: int, error: ErrorCode, member: str = "") -> Reply:
    return refuse(token, Joined(member_id=MemberId(member), error=error))


def sync_refused(token: int, error: ErrorCode) -> Reply:
    return refuse(token, Synced(error=error))


def join_reply(token: int, member: str, generation: int, leader: str, members: tuple[str, ...] = ()) -> Reply:
    """The answer to a JoinGroup of a dynamic member: the leader is given all `members`."""
    return reply(
        token,
        Joined(
            member_id=MemberId(member),
            generation=generation,
            protocol_type="consumer",
            protocol="range",
            leader=MemberId(leader),
            members=tuple(JoinedMember(MemberId(name), None, SUBSCRIPTION) for name in members),
        ),
    )


def given(token: int, part: bytes) -> Reply:
    return reply(token, Synced(protocol_type="consumer", protocol="range", assignment=part))


def stored(member: str, part: bytes = b"", *, instance: str | None = None) -> MemberValue:
    return MemberValue(
        member_id=MemberId(member),
        instance_id=None if instance is None else InstanceId(instance),
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_ms=REBALANCE_MS,
        session_ms=SESSION_MS,
        subscription=SUBSCRIPTION,
        assignment=part,
    )


def generation(number: int, at_ms: int, *members: MemberValue, leader: str | None = None) -> Append:
    """The record of a generation of consumers; without members the group is Empty."""
    value = GroupValue(
        protocol_type="consumer",
        generation=number,
        protocol="range" if members else None,
        leader=MemberId(leader or members[0].member_id) if members else None,
        state_ms=at_ms,
        members=members,
    )
    return Append(GroupRecord(GROUP, value))


def created(at_ms: int) -> Append:
    """The empty record with which a group begins."""
    value = GroupValue(protocol_type="", generation=0, protocol=None, leader=None, state_ms=at_ms)
    return Append(GroupRecord(GROUP, value))


def committed(at_ms: int, *, topic: str = "t", offset: int = 7) -> Append:
    value = OffsetValue(offset=offset, leader_epoch=-1, metadata="", commit_ms=at_ms)
    return Append(OffsetRecord(GROUP, topic, 0, value))


def forgotten(topic: str = "t") -> Append:
    return Append(OffsetRecord(GROUP, topic, 0, None))


# ---- places to start from


def completing(*members: str, instances: bool = False, config: GroupConfig = PROMPT) -> Script:
    """These members have just been told generation 1; the first leads. Their instances are named i-<member>."""
    script = Script(config=config)
    for n, member in enumerate(members, 1):
        script.does(join(-n, new=member, instance=f"i-{member}" if instances else None))
    script.does(fires("join"))
    if len(members) > 1:  # the delay, though none, was prolonged because more than one came
        script.does(fires("join"))
    script.notes.clear()
    return script.is_in(GroupState.COMPLETING, 1)


def stable(*members: str, instances: bool = False, config: GroupConfig = PROMPT) -> Script:
    """These members have the assignments of generation 1: each its own name in capitals; the first leads."""
    script = completing(*members, instances=instances, config=config)
    for n, member in enumerate(reversed(members), 101):
        script.does(sync(-n, member, 1, {name: name.upper().encode() for name in members}))
    script.notes.clear()
    return script.is_in(GroupState.STABLE, 1)


def preparing(*members: str) -> Script:
    """Stable, and then a member called `new` joins with token -200: the others have not come yet."""
    return stable(*members).does(join(-200, new="new")).is_in(GroupState.PREPARING, 1)


def empty() -> Script:
    """An Empty group that exists: somebody was given an id, and left it."""
    script = Script()
    script.does(join(-1, new="early", known=True)).does(leave(-2, "early"))
    return script.is_in(GroupState.EMPTY, 0)


def dead() -> Script:
    """A group that has just been deleted."""
    script = empty()
    return script.does(DeleteGroup(Token(-3))).is_in(GroupState.DEAD, 0)
