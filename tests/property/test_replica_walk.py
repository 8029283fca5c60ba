"""Every state that a leader with two followers can come into; the laws of `replica/state.py` hold in each.

One or two records, a wait for each, a flush that lags, followers that fetch from any offset, fall silent and come back,
ISR changes that are taken or refused. A state is what matters of it: of times, whether they are within the lag.
A state seen before is not walked again, and the walk ends when there is nothing new. A second walk, over one record,
has the changes from outside, too: elections, logs that are opened again, truncations of a follower, new settings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pickle import dumps, loads

import pytest
from tests.soak import soak_only

from rota.coordinator.replica.state import Effects, ExpandIsr, HighWatermarkMoved, ReplicaState, Role, ShrinkIsr
from rota.coordinator.replica.waits import Complete
from rota.protocol.errors import ErrorCode

LEADER, FOLLOWERS, ALL = 1, (2, 3), (1, 2, 3)
LAG_MS = 100
START_MS = 1_000_000
STATES_MAX = 60_000

State = ReplicaState[int]
Event = tuple[str, Callable[["WalkNode"], Effects[int]]]


@dataclass(slots=True)
class WalkNode:
    """A state, the time, the ISR that the controller is asked for, and how we came here."""

    state: State
    now_ms: int = START_MS
    requested: frozenset[int] | None = None
    waiting: frozenset[int] = frozenset()  # offsets; negative ones wait for the flush alone
    is_changed: bool = False  # from outside, too: then the leader has one follower
    path: tuple[str, ...] = ()
    effects: list[object] = field(default_factory=list)

    @property
    def followers(self) -> tuple[int, ...]:
        return FOLLOWERS[:1] if self.is_changed else FOLLOWERS

    @property
    def replicas(self) -> tuple[int, ...]:
        return LEADER, *self.followers

    def after(self, event: Event) -> WalkNode:
        name, do = event
        successor = replace(self, state=loads(dumps(self.state)), path=(*self.path, name), effects=[])
        successor.take(do(successor))
        return successor

    def take(self, effects: Effects[int]) -> None:
        for effect in effects:
            self.effects.append(effect)
            match effect:
                case ShrinkIsr(isr) | ExpandIsr(isr):
                    assert self.requested is None, "one request at a time"
                    self.requested = isr
                case Complete(offset, error):
                    assert offset in self.waiting, (self.path, "completed twice")
                    self.waiting -= {offset}
                    if error is ErrorCode.NONE and offset < 0:
                        assert -offset <= self.state.flushed_offset or not self.state.flushes, self.path
                    elif error is ErrorCode.NONE:
                        assert offset <= self.state.high_watermark, self.path

    def shape(self) -> tuple[object, ...]:
        state = self.state
        followers = []
        for name in self.followers:
            fetched = state.fetch_state(name)
            if fetched is not None:
                caught_up = self.now_ms - fetched.last_caught_up_ms <= LAG_MS
                recent = self.now_ms - fetched.last_fetch_ms <= LAG_MS
                ends = (fetched.log_end_offset, fetched.last_fetch_leader_end_offset)
                followers.append((name, *ends, caught_up, recent))
        offsets = (state.log_end_offset, state.high_watermark, state.flushed_offset, state.leader_epoch_start_offset)
        outside = (state.flushes, state._min_insync, state.has_min_isr, state.elr)
        return (state.role, offsets, state.isr, self.requested, self.waiting, tuple(followers), outside)


def wait(node: WalkNode) -> Effects[int]:
    offset = node.state.log_end_offset
    assert node.state.committed_error(offset) is None
    node.state.await_committed(offset, node.now_ms + LAG_MS, offset)
    node.waiting |= {offset}
    return ()


def append(node: WalkNode) -> Effects[int]:
    return node.state.appended(node.state.log_end_offset + 1)


def late(node: WalkNode) -> Effects[int]:
    node.now_ms += LAG_MS + 1
    return node.state.tick(node.now_ms)


def fetch(name: int, offset: int) -> Event:
    return f"{name} fetches {offset}", lambda node: node.state.follower_fetched(name, offset, node.now_ms)


def taken(node: WalkNode) -> Effects[int]:
    isr, node.requested = node.requested, None
    assert isr is not None
    return node.state.isr_changed(isr, node.now_ms)


def refused(node: WalkNode) -> Effects[int]:
    node.requested = None
    return node.state.isr_refused()


def flush(node: WalkNode) -> Effects[int]:
    return node.state.flushed(node.state.flushed_offset + 1)


def wait_for_flush(node: WalkNode) -> Effects[int]:
    offset = node.state.log_end_offset
    assert node.state.flushed_error(offset) is None
    node.state.await_flushed(offset, node.now_ms + LAG_MS, -offset)
    node.waiting |= {-offset}
    return ()


def lead(isr: frozenset[int], elr: frozenset[int] = frozenset()) -> Event:
    def do(node: WalkNode) -> Effects[int]:
        node.requested = None  # what the former leader has asked for is refused
        return node.state.become_leader(node.state.leader_epoch + 1, node.replicas, isr, node.now_ms, elr)

    return f"leads with {sorted(isr)}, ELR {sorted(elr)}", do


def announced(node: WalkNode) -> Effects[int]:
    """The topic's node has the new ISR before the request for it is answered."""
    assert node.requested is not None
    return node.state.become_leader(node.state.leader_epoch, node.replicas, node.requested, node.now_ms)


def reopen(end: int) -> Event:
    def do(node: WalkNode) -> Effects[int]:
        node.state.reopen(0, end, end)
        return ()

    return f"reopened at {end}", do


def truncate(node: WalkNode) -> Effects[int]:
    node.state.truncated(0, node.state.high_watermark)
    return ()


def configure(flushes: bool, minimum: int) -> Event:
    return f"flushes {flushes}, min {minimum}", lambda node: node.state.configure(
        flushes=flushes, min_insync_replicas=minimum
    )


def changes(node: WalkNode) -> Iterator[Event]:
    """What others do to the replica."""
    state = node.state
    yield configure(not state.flushes, state._min_insync)
    yield configure(state.flushes, 3 - state._min_insync)
    if state.role is Role.OFFLINE:
        yield from (reopen(end) for end in {state.flushed_offset, state.log_end_offset})
        return
    yield lead(frozenset(node.replicas))
    yield lead(frozenset({LEADER}), frozenset({2}))
    if state.role is Role.FOLLOWER:
        yield "truncate", truncate
        yield "leader committed", lambda node: node.state.leader_committed(node.state.log_end_offset)
    elif state.flushed_error(state.log_end_offset) is None and -state.log_end_offset not in node.waiting:
        yield "wait for the flush", wait_for_flush
    if node.requested is not None and state.role is Role.LEADER:
        yield "announced", announced


def choices(node: WalkNode, records: int) -> Iterator[Event]:
    state = node.state
    if node.is_changed:
        yield from changes(node)
    if state.role is not Role.LEADER:
        return
    end = state.log_end_offset
    if end < records and state.has_min_isr:
        yield "append", append
    if end not in node.waiting and state.committed_error(end) is None:
        yield "wait", wait
    if state.flushes and state.flushed_offset < end:
        yield "flush", flush
    for name in node.followers:
        for offset in range(end + 1):
            yield fetch(name, offset)
    if node.requested is not None:
        yield "taken", taken
        yield "refused", refused
    yield "late", late
    yield "resign", lambda node: node.state.become_follower(node.state.leader_epoch + 1)
    yield "fail", lambda node: node.state.fail()


def check(node: WalkNode, before: WalkNode) -> None:
    state, old, trail = node.state, before.state, node.path
    if old.role is Role.OFFLINE and state.role is Role.FOLLOWER:  # reopened
        assert state.high_watermark == min(old.high_watermark, state.log_end_offset), trail
        return
    assert state.high_watermark >= old.high_watermark, trail  # L1
    moved = state.high_watermark > old.high_watermark
    assert moved == (HighWatermarkMoved() in node.effects), trail
    if moved and state.role is Role.FOLLOWER:
        assert state.high_watermark <= state.log_end_offset, trail
    elif moved:
        assert not state.elr, trail  # L4
        assert state.role is Role.LEADER, trail
        assert state.has_min_isr, trail  # L4
        assert state.high_watermark <= state.log_end_offset, trail  # L3
        assert not state.flushes or state.high_watermark <= state.flushed_offset, trail
        for name in (state.isr | (node.requested or frozenset())) - {LEADER}:
            fetched = state.fetch_state(name)
            assert fetched is not None, trail
            assert fetched.log_end_offset >= state.high_watermark, trail
    if state.role is Role.LEADER:
        assert all(offset > state.high_watermark for offset in node.waiting if offset > 0), trail  # L5: done is done
        assert not state.flushes or all(-offset > state.flushed_offset for offset in node.waiting if offset < 0), trail
        assert state.flushes or all(offset > 0 for offset in node.waiting), trail
        assert LEADER in state.isr, trail
        assert state._pending_isr == node.requested, trail  # else no request would be answered, or followed by another
    else:
        assert not node.waiting, trail
    completed = [effect.token for effect in node.effects if isinstance(effect, Complete) and not effect.error]
    for kind in ([token for token in completed if token > 0], [-token for token in completed if token < 0]):
        assert kind == sorted(kind), trail


@pytest.mark.parametrize(
    ("minimum", "flushes", "records"),
    [(1, False, 1), (2, False, 1), (2, True, 1), pytest.param(1, False, 2, marks=soak_only)],
)
def test_all_that_a_leader_with_two_followers_can_do(minimum: int, flushes: bool, records: int) -> None:
    state = State(LEADER, flushes=flushes, min_insync_replicas=minimum, lag_ms_max=LAG_MS)
    state.become_leader(0, ALL, ALL, START_MS)
    isrs, seen = walk(WalkNode(state), records)
    assert seen > 100
    assert {frozenset({1}), frozenset({1, 2}), frozenset({1, 3}), frozenset(ALL)} <= isrs


def test_all_that_is_done_to_a_leader_with_a_follower() -> None:
    """Elections, reopened logs and new settings, at any moment."""
    state = State(LEADER, lag_ms_max=LAG_MS)
    state.become_leader(0, (1, 2), (1, 2), START_MS)
    isrs, seen = walk(WalkNode(state, is_changed=True), 1)
    assert seen > 1_000
    assert {frozenset(), frozenset({1}), frozenset({1, 2})} == isrs


def walk(start: WalkNode, records: int) -> tuple[set[frozenset[int]], int]:
    """Return the ISRs that were met, and the number of states."""
    queue, seen, isrs = deque([start]), {start.shape()}, set[frozenset[int]]()
    while queue:
        node = queue.popleft()
        isrs.add(node.state.isr)
        for event in choices(node, records):
            successor = node.after(event)
            check(successor, node)
            shape = successor.shape()
            if shape not in seen:
                assert len(seen) < STATES_MAX
                seen.add(shape)
                queue.append(successor)
    return isrs, len(seen)
