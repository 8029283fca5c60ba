"""Every state that two members, and that one static member, can bring a group into; the laws hold in each (G1-G5).

A state is what matters of it: tokens, times and absolute generations do not. One seen before is not walked again, and
the walk ends when there is nothing new: it is exhaustive for these actors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from tests.property.group_world import parked_in, step

from rota.coordinator.group.effects import Append, Arm, Disarm, GroupRecord, Reply
from rota.coordinator.group.events import (
    Event,
    InstanceId,
    Join,
    Leave,
    LeavingMember,
    MemberId,
    Proto,
    Sync,
    TimerFired,
    Token,
)
from rota.coordinator.group.machine import Group
from rota.coordinator.group.state import GroupConfig
from rota.coordinator.group.transitions import TRANSITIONS, GroupState

CONFIG = GroupConfig(initial_rebalance_delay_ms=10, session_min_ms=1)
OLD, NEW = (Proto("range", b"old"),), (Proto("range", b"new"),)
STATES_MAX = 20_000  # beyond that the shape below lets something through that does not matter


@dataclass(slots=True)
class WalkNode:
    """A group, the timers that are armed, who waits, and how we came here."""

    group: Group
    timers: dict[str, int] = field(default_factory=dict)
    waiting: set[Token] = field(default_factory=set)
    last: GroupRecord | None = None  # what a compacted log would hold
    now_ms: int = 0
    path: tuple[Event, ...] = ()

    def after(self, event: Event) -> WalkNode:
        successor = WalkNode(
            deepcopy(self.group), dict(self.timers), set(self.waiting), self.last, self.now_ms, (*self.path, event)
        )
        if isinstance(event, TimerFired):
            successor.now_ms = max(successor.now_ms, successor.timers.pop(event.key))
            if event.key.startswith("session:"):  # it is really over: no heartbeat came
                member = successor.group.members.get(MemberId(event.key.partition(":")[2]))
                successor.now_ms = max(successor.now_ms, member.deadline_ms if member else 0)
        else:
            successor.waiting.add(event.token)  # type: ignore[union-attr]
        successor.take(event)
        return successor

    def take(self, event: Event) -> None:
        for effect in step(self.group, event, self.now_ms):
            match effect:
                case Append(record):
                    assert isinstance(record, GroupRecord)
                    self.last = record
                case Reply(token):
                    self.waiting.remove(token)
                case Arm(key, at_ms):
                    self.timers[key] = at_ms
                case Disarm(key):
                    self.timers.pop(key, None)

    def crashed(self) -> WalkNode:
        """Only the last record is left."""
        group = Group("g", CONFIG)
        if self.last is not None:
            group.replay(self.last)
        successor = WalkNode(group, {}, set(), self.last, self.now_ms, self.path)
        for effect in group.loaded(self.now_ms):
            if isinstance(effect, Arm):
                successor.timers[effect.key] = effect.at_ms
        return successor

    def shape(self) -> tuple[object, ...]:
        group = self.group
        members = [
            (
                m.member_id,
                tuple((proto.name, proto.metadata) for proto in m.protocols),
                bool(m.assignment),
                m.join is not None,
                m.sync is not None,
                m.is_new,
                m.timer in self.timers,
            )
            for m in group.members
        ]
        initial = group.initial and (group.initial.remaining_ms > 0, group.initial.grew)
        some = group.members
        return (
            group.state,
            frozenset(members),
            some.leader,
            frozenset(some.pending),
            frozenset(some.unsynced),
            initial,
            frozenset(self.timers),
            self.last and self.last.value and frozenset((m.member_id, m.assignment) for m in self.last.value.members),
        )


# ---- who may do what


def join(
    token: int, member: str, fresh: str = "", protocols: tuple[Proto, ...] = OLD, *, instance: str | None, known: bool
) -> Join:
    return Join(
        token=Token(token),
        member_id=MemberId(member),
        instance_id=None if instance is None else InstanceId(instance),
        fresh_id=MemberId(fresh),
        client_id="c",
        client_host="/h",
        session_ms=100,
        rebalance_ms=50,
        protocol_type="consumer",
        protocols=protocols,
        requires_known_id=known,
        can_skip_assignment=True,
    )


def sync(token: int, member: str, generation: int, parts: tuple[str, ...]) -> Sync:
    return Sync(
        token=Token(token),
        member_id=MemberId(member),
        instance_id=None,
        generation=generation,
        protocol_type=None,
        protocol=None,
        assignments=tuple((MemberId(part), b"x") for part in parts),
    )


def of_two_members(node: WalkNode) -> Iterator[Event]:
    """a and b come (asked for an id first or not), rejoin changed or not, sync, leave, and fall silent."""
    n = len(node.path) + 1
    for who in ("a", "b"):
        if who in node.group.members.by_id:
            yield join(n, who, protocols=OLD, instance=None, known=False)
            yield join(n, who, protocols=NEW, instance=None, known=False)
            yield sync(n, who, node.group.generation, ("a", "b"))
            yield sync(n, who, node.group.generation - 1, ("a", "b"))
            yield Leave(Token(n), (LeavingMember(MemberId(who), None),))
        elif who in node.group.members.pending:
            yield join(n, who, instance=None, known=False)
            yield Leave(Token(n), (LeavingMember(MemberId(who), None),))
        else:
            yield join(n, "", who, instance=None, known=False)
            yield join(n, "", who, instance=None, known=True)
    yield from map(TimerFired, node.timers)


def of_a_static_member(node: WalkNode) -> Iterator[Event]:
    """The instance i comes back as one of two member ids; a dynamic member stands by."""
    n = len(node.path) + 1
    for who in ("i1", "i2"):
        if who in node.group.members.by_id:
            yield join(n, who, instance="i", known=False)
            yield sync(n, who, node.group.generation, ("i1", "i2", "d"))
            yield Leave(Token(n), (LeavingMember(MemberId(""), InstanceId("i")),))
        else:
            yield join(n, "", who, instance="i", known=False)
            yield join(n, "", who, protocols=NEW, instance="i", known=False)
    if "d" in node.group.members.by_id:
        yield join(n, "d", instance=None, known=False)
        yield sync(n, "d", node.group.generation, ("i1", "i2", "d"))
        yield Leave(Token(n), (LeavingMember(MemberId("d"), None),))
    else:
        yield join(n, "", "d", instance=None, known=False)
    yield from map(TimerFired, node.timers)


# ---- what holds everywhere


def check(node: WalkNode, before: WalkNode | None) -> None:
    group, trail = node.group, node.path
    assert parked_in(group) == node.waiting, trail  # G4
    assert before is None or group.generation >= before.group.generation, trail  # G2
    for member in group.members:
        waits = not member.is_new and (member.join is not None or member.sync is not None)
        assert waits or node.timers[member.timer] <= member.deadline_ms, trail
        assert group.state is GroupState.PREPARING or member.join is None, trail
        assert group.state is GroupState.COMPLETING or member.sync is None, trail
    assert (group.state is GroupState.PREPARING) <= ("join" in node.timers), trail
    assert (not group.members.unsynced) or "sync" in node.timers, trail
    assert all(f"pending:{who}" in node.timers for who in group.members.pending), trail
    assert (group.state is GroupState.EMPTY) <= (not group.members), trail
    assert len(group.members.by_instance) <= 1  # G1: an instance is one member
    if group.state is GroupState.STABLE:
        assert group.hard is not None
        parts = {member.member_id: member.assignment for member in group.hard.members}
        assert all(parts[member.member_id] == member.assignment for member in group.members), trail


def check_crashed(node: WalkNode) -> None:
    crashed = node.crashed()
    assert (crashed.group.hard, crashed.group.generation) == (node.group.hard, node.group.generation)  # G5
    assert crashed.group.state not in (GroupState.COMPLETING, GroupState.DEAD)
    check(crashed, node)


def walk(choices: Callable[[WalkNode], Iterator[Event]]) -> tuple[int, set[tuple[GroupState, GroupState]]]:
    """The count of states and the transitions that were taken."""
    start = WalkNode(Group("g", CONFIG))
    queue, seen = deque([start]), {start.shape()}
    taken = set()
    while queue:
        node = queue.popleft()
        check_crashed(node)
        for event in choices(node):
            successor = node.after(event)
            check(successor, node)
            taken.add((node.group.state, successor.group.state))
            shape = successor.shape()
            if shape not in seen:
                assert len(seen) < STATES_MAX
                seen.add(shape)
                queue.append(successor)
    return len(seen), taken


def test_all_that_two_members_can_do() -> None:
    states, taken = walk(of_two_members)
    assert states > 100
    # several transitions may happen in one step (a leader that is alone rejoins), but each of these is seen by itself
    direct = {(old, new) for old, targets in TRANSITIONS.items() for new in targets if new is not GroupState.DEAD}
    assert direct - {(GroupState.DEAD, GroupState.DEAD)} <= taken


def test_all_that_a_static_member_can_do() -> None:
    states, _ = walk(of_a_static_member)
    assert states > 100
