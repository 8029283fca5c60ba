"""Every state that a leader with two followers can come into; the laws of `replica/state.py` hold in each.

One or two records, a wait for each, a flush that lags, followers that fetch from any offset, fall silent and come back,
ISR changes that are taken or refused. A state is what matters of it: of times, whether they are within the lag.
A state seen before is not walked again, and the walk ends when there is nothing new.
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
    waiting: frozenset[int] = frozenset()  # offsets
    path: tuple[str, ...] = ()
    effects: list[object] = field(default_factory=list)

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
                    assert error is not ErrorCode.NONE or offset <= self.state.high_watermark, self.path

    def shape(self) -> tuple[object, ...]:
        state = self.state
        followers = []
        for name in FOLLOWERS:
            fetched = state.fetch_state(name)
            if fetched is not None:
                caught_up = self.now_ms - fetched.last_caught_up_ms <= LAG_MS
                recent = self.now_ms - fetched.last_fetch_ms <= LAG_MS
                ends = (fetched.log_end_offset, fetched.last_fetch_leader_end_offset)
                followers.append((name, *ends, caught_up, recent))
        offsets = (state.log_end_offset, state.high_watermark, state.flushed_offset, state.leader_epoch_start_offset)
        return (state.role, offsets, state.isr, self.requested, self.waiting, tuple(followers))


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


def choices(place: Place, records: int) -> Iterator[Event]:
    state = place.state
    if state.role is not Role.LEADER:
        return
    end = state.log_end_offset
    if end < records and state.has_min_isr:
        yield "append", append
    if end not in place.waiting and state.committed_error(end) is None:
        yield "wait", wait
    if state.flushes and state.flushed_offset < end:
        yield "flush", flush
    for name in FOLLOWERS:
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
    assert state.high_watermark >= old.high_watermark, trail  # L1
    moved = state.high_watermark > old.high_watermark
    assert moved == (HighWatermarkMoved() in place.effects), trail
    if moved:
        assert state.role is Role.LEADER, trail
        assert state.has_min_isr, trail  # L4
        assert state.high_watermark <= state.log_end_offset, trail  # L3
        assert not state.flushes or state.high_watermark <= state.flushed_offset, trail
        for name in (state.isr | (place.requested or frozenset())) - {LEADER}:
            fetched = state.fetch_state(name)
            assert fetched is not None, trail
            assert fetched.log_end_offset >= state.high_watermark, trail
    if state.role is Role.LEADER:
        assert all(offset > state.high_watermark for offset in place.waiting), trail  # L5: who can be answered is
        assert LEADER in state.isr, trail
    else:
        assert not place.waiting, trail
    completed = [effect.token for effect in place.effects if isinstance(effect, Complete) and not effect.error]
    assert completed == sorted(completed), trail


@pytest.mark.parametrize(("minimum", "flushes", "records"), [(1, False, 2), (2, False, 1), (2, True, 1)])
def test_all_that_a_leader_with_two_followers_can_do(minimum: int, flushes: bool, records: int) -> None:
    state = State(LEADER, flushes=flushes, min_insync_replicas=minimum, lag_ms_max=LAG_MS)
    state.become_leader(0, ALL, ALL, START_MS)
    start = Place(state)
    queue, seen, isrs = deque([start]), {start.shape()}, set()
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
    assert len(seen) > 100
    assert {frozenset({1}), frozenset({1, 2}), frozenset({1, 3}), frozenset(ALL)} <= isrs
