"""A shell around one group that can crash: it holds replies until the log is durable, and checks the laws as it goes.

The log is written in order and made durable by `flush`. A crash keeps the durable part and any number of the records
after it, loses everything soft, and loads again. A request that was waiting then is lost with its connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from rota.coordinator.group import waiting
from rota.coordinator.group.effects import (
    Append,
    AppendAndReply,
    Arm,
    Body,
    Disarm,
    Effect,
    GroupRecord,
    Note,
    OffsetRecord,
    Reply,
    Synced,
)
from rota.coordinator.group.events import Event, Join, MemberId, Sync, TimerFired, Token
from rota.coordinator.group.machine import Group
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode

Record = GroupRecord | OffsetRecord
CONFIG = GroupConfig(initial_rebalance_delay_ms=100, session_min_ms=1)
TIMERS_FIRED_MAX = 500
COMPARED_MAX = 10  # members of a group that is compared as a whole after each step


def compacted(log: list[Record]) -> list[Record]:
    """The last record of each key, in the order of the log."""
    last = {key_of(record): record for record in log}
    return [record for record in log if last[key_of(record)] is record]


def key_of(record: Record) -> tuple[object, ...]:
    return ("group",) if isinstance(record, GroupRecord) else (record.topic, record.partition)


def rebuilt(log: list[Record], config: GroupConfig = CONFIG) -> Group:
    group = Group("g", config)
    for record in log:
        group.replay(record)
    return group


def hard(group: Group) -> tuple[object, ...]:
    return (group.hard, group.generation, group.offsets)


def soft(group: Group) -> tuple[object, ...]:
    """All that a refused request must leave as it was."""
    members = [
        (m.member_id, m.instance_id, m.protocols, m.assignment, m.join, m.sync, m.is_new, m.deadline_ms)
        for m in group.members
    ]
    pending, unsynced = list(group.members.pending), list(group.members.unsynced)
    return (group.state, members, pending, unsynced, group.members.leader, group.protocol, group.protocol_type)


def whole(value: object) -> object:
    """Everything in a group, as values that can be compared."""
    if isinstance(value, dict):
        return {key: whole(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [whole(each) for each in value]
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return {name: whole(getattr(value, name)) for name in names} if names else value


def without_event(group: Group, event: Event, now_ms: int) -> list[Effect] | None:
    """Decide on a JoinGroup or a SyncGroup as the API does first; None where it lets a step decide."""
    if isinstance(event, Join):
        client, timeouts_ms = (event.client_id, event.client_host), (event.session_ms, event.rebalance_ms)
        arguments = (event.member_id, event.instance_id, client, timeouts_ms, event.protocol_type, event.protocols)
        return [] if waiting.park_join(group, event.token, *arguments, now_ms) else None
    if not isinstance(event, Sync):
        return None
    part = (event.member_id, event.instance_id, event.generation, (event.protocol_type, event.protocol))
    if waiting.park_sync(group, event.token, *part):
        return []
    body = waiting.assignment_of(group, *part)
    return None if body is None else [Reply(event.token, body)]


def step(group: Group, event: Event, now_ms: int) -> list[Effect]:
    """Step an event. What is decided without it is the same and leaves the same group, or nothing has changed (G4a)."""
    if not isinstance(event, Join | Sync) or len(group.members) + len(group.members.pending) > COMPARED_MAX:
        return group.step(event, now_ms)
    other = deepcopy(group)
    decided = without_event(other, event, now_ms)
    if decided is None:
        assert whole(other) == whole(group)
    effects = group.step(event, now_ms)
    if decided is not None:
        assert (decided, whole(other)) == (effects, whole(group))
    return effects


def parked_in(group: Group) -> set[Token]:
    return {token for member in group.members for token in (member.join, member.sync) if token is not None}


class World:
    """One group, its log, its timers and those who wait for it."""

    def __init__(self, config: GroupConfig = CONFIG) -> None:
        self.config = config
        self.group = Group("g", config)
        self.now_ms = 0
        self.log: list[Record] = []
        self.durable = 0
        self.timers: dict[str, int] = {}
        self.waiting: set[Token] = set()  # asked, not answered
        self.held: list[tuple[Token, Body]] = []  # answered, not durable
        self.answers: dict[Token, Body] = {}  # delivered
        self.parts: dict[tuple[int, int, MemberId], bytes] = {}  # what was delivered, by life, generation and member
        self.sync_requests: dict[Token, tuple[int, MemberId]] = {}  # who asked for a part, and of which generation
        self.last_token = 0

    # ---- in

    def token(self) -> Token:
        self.last_token += 1
        return Token(self.last_token)

    def send_request(self, event: Event) -> Body | None:
        """Step a request; what came out for it, if anything (held or not)."""
        token = event.token  # type: ignore[union-attr]
        self.waiting.add(token)
        self.step(event)
        held = dict(self.held)
        return held.get(token, self.answers.get(token))

    def step(self, event: Event) -> None:
        assert not self.group.members or self.group.state is not GroupState.EMPTY
        self.perform(step(self.group, event, self.now_ms))
        if self.group.state is GroupState.DEAD:
            self.group = Group("g", self.config)

    def fire(self, key: str) -> None:
        self.now_ms = max(self.now_ms, self.timers.pop(key))
        self.step(TimerFired(key))

    def fire_next(self) -> None:
        self.fire(min(self.timers, key=lambda key: self.timers[key]))

    # ---- out

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Append(record):
                    self.check_growth(record)
                    self.log.append(record)
                case AppendAndReply(records, token, body):
                    self.log += records
                    self.reply(token, body, when_durable=True)
                case Reply(token, body, when_durable):
                    self.reply(token, body, when_durable=when_durable)
                case Arm(key, at_ms):
                    assert at_ms >= self.now_ms
                    self.timers[key] = at_ms
                case Disarm(key):
                    self.timers.pop(key, None)
                case Note():
                    assert effect.fields["group"] == "g"

    def reply(self, token: Token, body: Body, *, when_durable: bool) -> None:
        assert token in self.waiting, "answered twice, or never asked"
        self.waiting.remove(token)
        if when_durable and self.durable < len(self.log):
            self.held.append((token, body))
        else:
            self.deliver(token, body)

    def check_growth(self, record: Record) -> None:
        """G2 as the log sees it."""
        if isinstance(record, OffsetRecord) or record.value is None:
            return
        before = next((r.value for r in reversed(self.log) if isinstance(r, GroupRecord)), None)
        assert before is None or record.value.generation >= before.generation
        if before is not None and record.value.generation == before.generation and before.members:
            were_assigned = any(member.assignment for member in before.members)
            # of one generation only two records differ: begun and assigned; or an instance has another member id
            parts = {m.instance_id or m.member_id: m.assignment for m in before.members}
            now = {m.instance_id or m.member_id: m.assignment for m in record.value.members}
            assert now.keys() == parts.keys()
            assert not were_assigned or now == parts

    def deliver(self, token: Token, body: Body) -> None:
        self.answers[token] = body
        if isinstance(body, Synced) and body.error is ErrorCode.NONE:
            self.check_part(token, body.assignment)

    @property
    def life(self) -> int:
        """A group that was deleted begins again at generation 0: another life."""
        return sum(1 for record in self.log if isinstance(record, GroupRecord) and record.value is None)

    def check_part(self, token: Token, part: bytes) -> None:
        """G2: one member is never given two parts for one generation, nor one that no leader brought."""
        assert part, "every leader here assigns something to everybody"
        generation, member_id = self.sync_requests[token]
        assert self.parts.setdefault((self.life, generation, member_id), part) == part

    # ---- the world

    def flush(self) -> None:
        self.durable = len(self.log)
        held, self.held = self.held, []
        for token, body in held:
            self.deliver(token, body)

    def crash(self, kept: int) -> None:
        """Keep the durable records and `kept` of those after them."""
        self.log = self.log[: self.durable + kept]
        self.durable = len(self.log)
        self.waiting, self.held, self.timers = set(), [], {}
        self.group = rebuilt(self.log, self.config)
        self.perform(self.group.loaded(self.now_ms))
        self.durable = len(self.log)

    def settle(self) -> None:
        """Let the timers ring until nobody waits (G4: in time)."""
        for _ in range(TIMERS_FIRED_MAX):
            if not self.waiting:
                return
            assert self.timers, "somebody waits and no timer will wake the group"
            self.fire_next()
        raise AssertionError(f"still waiting: {self.waiting}")

    # ---- the laws that hold between steps

    def check(self) -> None:
        self.check_waiting()
        self.check_states()
        self.check_timers()
        for log in (self.log, compacted(self.log)):
            assert hard(rebuilt(log)) == hard(self.group)  # G5

    def check_waiting(self) -> None:
        """G4: who waits is parked in the group, and nobody else is."""
        assert parked_in(self.group) == self.waiting
        assert self.group.members.awaiting_join == sum(m.join is not None for m in self.group.members)

    def check_states(self) -> None:
        group = self.group
        members = list(group.members)
        if group.state is GroupState.EMPTY:
            assert not members
        if group.state is not GroupState.PREPARING:
            assert not any(member.join for member in members)
        if group.state is not GroupState.COMPLETING:
            assert not any(member.sync for member in members)
        if group.state in (GroupState.COMPLETING, GroupState.STABLE):
            assert group.members.leader in group.members.by_id
            assert group.hard is not None
            recorded = {m.member_id: m.assignment for m in group.hard.members}
            assert recorded.keys() >= group.members.by_id.keys()
            if group.state is GroupState.STABLE:  # what is handed out is what is on the log
                assert all(recorded[member.member_id] == member.assignment for member in members)
        holders = {m.instance_id: m.member_id for m in members if m.instance_id is not None}
        assert holders == group.members.by_instance  # G1: an instance is one member

    def check_timers(self) -> None:
        """Somebody always wakes the group up."""
        group = self.group
        for member in group.members:
            waits = not member.is_new and (member.join is not None or member.sync is not None)
            assert waits or self.timers[member.timer] <= member.deadline_ms
        for member_id in group.members.pending:
            assert f"pending:{member_id}" in self.timers
        if group.state is GroupState.PREPARING:
            assert "join" in self.timers
        if group.members.unsynced:
            assert "sync" in self.timers

    def members(self) -> Iterator[MemberId]:
        yield from self.group.members.by_id
