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

from rota.coordinator.replica.state import Effects, ExpandIsr, HighWatermarkMoved, ReplicaState, Role, ShrinkIsr
from rota.coordinator.replica.waits import Complete
from rota.protocol.errors import ErrorCode

LEADER, FOLLOWERS, ALL = 1, (2, 3), (1, 2, 3)
LAG_MS = 100
START_MS = 1_000_000
STATES_MAX = 60_000

State = ReplicaState[int]
Event = tuple[str, Callable[["Place"], Effects[int]]]


@dataclass(slots=True)
class Place:
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

    def after(self, event: Event) -> Place:
        name, do = event
        there = replace(self, state=loads(dumps(self.state)), path=(*self.path, name), effects=[])
        there.take(do(there))
        return there

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


def wait(place: Place) -> Effects[int]:
    offset = place.state.log_end_offset
    assert place.state.committed_error(offset) is None
    place.state.await_committed(offset, place.now_ms + LAG_MS, offset)
    place.waiting |= {offset}
    return ()


def append(place: Place) -> Effects[int]:
    return place.state.appended(place.state.log_end_offset + 1)


def late(place: Place) -> Effects[int]:
    place.now_ms += LAG_MS + 1
    return place.state.tick(place.now_ms)


def fetch(name: int, offset: int) -> Event:
    return f"{name} fetches {offset}", lambda place: place.state.follower_fetched(name, offset, place.now_ms)


def taken(place: Place) -> Effects[int]:
    isr, place.requested = place.requested, None
    assert isr is not None
    return place.state.isr_changed(isr, place.now_ms)


def refused(place: Place) -> Effects[int]:
    place.requested = None
    return place.state.isr_refused()


def flush(place: Place) -> Effects[int]:
    return place.state.flushed(place.state.flushed_offset + 1)


def wait_for_flush(place: Place) -> Effects[int]:
    offset = place.state.log_end_offset
    assert place.state.flushed_error(offset) is None
    place.state.await_flushed(offset, place.now_ms + LAG_MS, -offset)
    place.waiting |= {-offset}
    return ()


def lead(isr: frozenset[int], elr: frozenset[int] = frozenset()) -> Event:
    def do(place: Place) -> Effects[int]:
        place.requested = None  # what the former leader has asked for is refused
        return place.state.become_leader(place.state.leader_epoch + 1, place.replicas, isr, place.now_ms, elr)

    return f"leads with {sorted(isr)}, ELR {sorted(elr)}", do


def announced(place: Place) -> Effects[int]:
    """The topic's node has the new ISR before the request for it is answered."""
    assert place.requested is not None
    return place.state.become_leader(place.state.leader_epoch, place.replicas, place.requested, place.now_ms)


def reopen(end: int) -> Event:
    def do(place: Place) -> Effects[int]:
        place.state.reopen(0, end, end)
        return ()

    return f"reopened at {end}", do


def truncate(place: Place) -> Effects[int]:
    place.state.truncated(0, place.state.high_watermark)
    return ()


def configure(flushes: bool, minimum: int) -> Event:
    return f"flushes {flushes}, min {minimum}", lambda place: place.state.configure(
        flushes=flushes, min_insync_replicas=minimum
    )


def changes(place: Place) -> Iterator[Event]:
    """What others do to the replica."""
    state = place.state
    yield configure(not state.flushes, state._min_insync)
    yield configure(state.flushes, 3 - state._min_insync)
    if state.role is Role.OFFLINE:
        yield from (reopen(end) for end in {state.flushed_offset, state.log_end_offset})
        return
    yield lead(frozenset(place.replicas))
    yield lead(frozenset({LEADER}), frozenset({2}))
    if state.role is Role.FOLLOWER:
        yield "truncate", truncate
        yield "leader committed", lambda place: place.state.leader_committed(place.state.log_end_offset)
    elif state.flushed_error(state.log_end_offset) is None and -state.log_end_offset not in place.waiting:
        yield "wait for the flush", wait_for_flush
    if place.requested is not None and state.role is Role.LEADER:
        yield "announced", announced


def choices(place: Place, records: int) -> Iterator[Event]:
    state = place.state
    if place.is_changed:
        yield from changes(place)
    if state.role is not Role.LEADER:
        return
    end = state.log_end_offset
    if end < records and state.has_min_isr:
        yield "append", append
    if end not in place.waiting and state.committed_error(end) is None:
        yield "wait", wait
    if state.flushes and state.flushed_offset < end:
        yield "flush", flush
    for name in place.followers:
        for offset in range(end + 1):
            yield fetch(name, offset)
    if place.requested is not None:
        yield "taken", taken
        yield "refused", refused
    yield "late", late
    yield "resign", lambda place: place.state.become_follower(place.state.leader_epoch + 1)
    yield "fail", lambda place: place.state.fail()


def check(place: Place, before: Place) -> None:
    state, old, trail = place.state, before.state, place.path
    if old.role is Role.OFFLINE and state.role is Role.FOLLOWER:  # reopened
        assert state.high_watermark == min(old.high_watermark, state.log_end_offset), trail
        return
    assert state.high_watermark >= old.high_watermark, trail  # L1
    moved = state.high_watermark > old.high_watermark
    assert moved == (HighWatermarkMoved() in place.effects), trail
    if moved and state.role is Role.FOLLOWER:
        assert state.high_watermark <= state.log_end_offset, trail
    elif moved:
        assert not state.elr, trail  # L4
        assert state.role is Role.LEADER, trail
        assert state.has_min_isr, trail  # L4
        assert state.high_watermark <= state.log_end_offset, trail  # L3
        assert not state.flushes or state.high_watermark <= state.flushed_offset, trail
        for name in (state.isr | (place.requested or frozenset())) - {LEADER}:
            fetched = state.fetch_state(name)
            assert fetched is not None, trail
            assert fetched.log_end_offset >= state.high_watermark, trail
    if state.role is Role.LEADER:
        assert all(offset > state.high_watermark for offset in place.waiting if offset > 0), trail  # L5: done is done
        assert not state.flushes or all(-offset > state.flushed_offset for offset in place.waiting if offset < 0), trail
        assert state.flushes or all(offset > 0 for offset in place.waiting), trail
        assert LEADER in state.isr, trail
        assert state._pending_isr == place.requested, trail  # else no request would be answered, or followed by another
    else:
        assert not place.waiting, trail
    completed = [effect.token for effect in place.effects if isinstance(effect, Complete) and not effect.error]
    for kind in ([token for token in completed if token > 0], [-token for token in completed if token < 0]):
        assert kind == sorted(kind), trail


@pytest.mark.parametrize(("minimum", "flushes", "records"), [(1, False, 2), (2, False, 1), (2, True, 1)])
def test_all_that_a_leader_with_two_followers_can_do(minimum: int, flushes: bool, records: int) -> None:
    state = State(LEADER, flushes=flushes, min_insync_replicas=minimum, lag_ms_max=LAG_MS)
    state.become_leader(0, ALL, ALL, START_MS)
    isrs, seen = walk(Place(state), records)
    assert seen > 100
    assert {frozenset({1}), frozenset({1, 2}), frozenset({1, 3}), frozenset(ALL)} <= isrs


def test_all_that_is_done_to_a_leader_with_a_follower() -> None:
    """Elections, reopened logs and new settings, at any moment."""
    state = State(LEADER, lag_ms_max=LAG_MS)
    state.become_leader(0, (1, 2), (1, 2), START_MS)
    isrs, seen = walk(Place(state, is_changed=True), 1)
    assert seen > 1_000
    assert {frozenset(), frozenset({1}), frozenset({1, 2})} == isrs


def walk(start: Place, records: int) -> tuple[set[frozenset[int]], int]:
    """Return the ISRs that were met, and the number of states."""
    queue, seen, isrs = deque([start]), {start.shape()}, set[frozenset[int]]()
    while queue:
        place = queue.popleft()
        isrs.add(place.state.isr)
        for event in choices(place, records):
            there = place.after(event)
            check(there, place)
            shape = there.shape()
            if shape not in seen:
                assert len(seen) < STATES_MAX
                seen.add(shape)
                queue.append(there)
    return isrs, len(seen)
