from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.replica.replication_throttle import WAIT_MS_MAX, ByteRate, ReplicationThrottle

RATE = 1_000


class World:
    """A quota whose clock is `now_ms`."""

    def __init__(self) -> None:
        self.now_ms = 5_000_000
        self.quota = ByteRate(lambda: self.now_ms)

    def copy(self, size_bytes: int, after_ms: int = 0) -> None:
        self.now_ms += after_ms
        self.quota.record(size_bytes)


def test_a_quota_is_exceeded_by_more_than_the_rate_in_a_window() -> None:
    world = World()
    assert not world.quota.is_exceeded(RATE)
    world.copy(RATE)
    assert not world.quota.is_exceeded(RATE)
    world.copy(1)
    assert world.quota.is_exceeded(RATE)


def test_the_windows_of_a_throttle_that_holds_nobody_back_are_forgotten() -> None:
    world = World()
    throttle = ReplicationThrottle(world.quota, lambda: RATE, lambda *_: True)
    for _ in range(100):
        world.now_ms += 1_000
        assert not throttle.is_held_back("t", 0, is_in_sync=True)
        throttle.record("t", 0, 1)
    assert len(world.quota._samples) <= 11


def test_the_wait_is_never_negative_while_the_clock_goes_on() -> None:
    times = iter([0, 10_999, *range(11_000, 11_010)])
    quota = ByteRate(lambda: next(times))
    quota.record(20 * RATE)
    assert quota.wait_ms(RATE) == WAIT_MS_MAX
    assert quota.wait_ms(RATE) == 0


def test_bytes_are_measured_over_the_time_since_the_oldest_window() -> None:
    world = World()
    for _ in range(4):
        world.copy(RATE, after_ms=1_000)
    assert world.quota.is_exceeded(RATE)  # four times as many bytes in three seconds
    world.now_ms += 1_000
    assert not world.quota.is_exceeded(RATE)
    assert world.quota.is_exceeded(RATE - 1)


def test_bytes_of_eleven_windows_ago_do_not_count() -> None:
    world = World()
    world.copy(100 * RATE)
    world.now_ms += 10_999
    assert world.quota.is_exceeded(RATE)
    world.now_ms += 1
    assert not world.quota.is_exceeded(0)


@pytest.mark.parametrize(("size_bytes", "wait_ms"), [(RATE, 0), (RATE + 1, 1), (RATE + 500, 500), (9 * RATE, 1_000)])
def test_the_wait_ends_when_the_quota_is_not_exceeded(size_bytes: int, wait_ms: int) -> None:
    world = World()
    world.copy(size_bytes)
    assert world.quota.wait_ms(RATE) == wait_ms


def test_a_rate_of_zero_stops_all_copying() -> None:
    world = World()
    assert world.quota.wait_ms(0) == 0
    world.copy(1)
    assert world.quota.wait_ms(0) == WAIT_MS_MAX


@given(st.lists(st.tuples(st.integers(0, 3 * RATE), st.integers(0, 4_000)), max_size=40))
def test_who_waits_copies_no_faster_than_the_rate(copies: list[tuple[int, int]]) -> None:
    """Beyond one window, and the last copy, which may be larger than what is left."""
    world, copied, began_ms, last = World(), 0, 5_000_000, 0
    for size_bytes, pause_ms in copies:
        world.now_ms += pause_ms
        while wait_ms := world.quota.wait_ms(RATE):
            assert 0 < wait_ms <= WAIT_MS_MAX
            world.now_ms += wait_ms
        assert 1_000 * (copied - last) <= RATE * (world.now_ms - began_ms + 1_000) + 1_000 * last
        world.copy(size_bytes)
        copied, last = copied + size_bytes, size_bytes


class Throttled:
    """A throttle for partition 0 of topic "t" with a rate that can be changed."""

    def __init__(self, rate: int | None) -> None:
        self.rate = rate
        self.throttle = ReplicationThrottle(
            ByteRate(lambda: 0), lambda: self.rate, lambda topic, index: (topic, index) == ("t", 0)
        )

    def is_held_back(self, index: int = 0, *, is_in_sync: bool = False) -> bool:
        return self.throttle.is_held_back("t", index, is_in_sync=is_in_sync)


def test_only_listed_replicas_that_are_not_in_sync_are_held_back() -> None:
    world = Throttled(RATE)
    world.throttle.record("t", 0, 2 * RATE)
    assert world.is_held_back()
    assert not world.is_held_back(1)
    assert not world.is_held_back(is_in_sync=True)
    assert world.throttle.wait_ms == 1_000


def test_bytes_of_other_replicas_do_not_count() -> None:
    world = Throttled(RATE)
    world.throttle.record("t", 1, 2 * RATE)
    assert not world.is_held_back()


def test_without_a_rate_nothing_is_held_back() -> None:
    world = Throttled(RATE)
    world.throttle.record("t", 0, 2 * RATE)
    world.rate = None
    assert not world.is_held_back()
    assert world.throttle.wait_ms == 0
