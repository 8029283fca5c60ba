"""FD8, FD9: nothing twice, and from nobody more than the allowance."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soak import examples

from rota.coordinator.membership.datagram_limits import (
    BURST,
    DATAGRAMS_PER_SECOND,
    REPLAY_WINDOW,
    SOURCES_MAX,
    RateLimits,
    ReplayWindow,
)


@given(st.lists(st.integers(0, 2 * REPLAY_WINDOW), max_size=200))
@settings(max_examples=examples(100))
def test_a_counter_is_accepted_once_and_while_it_is_in_the_window(counters: list[int]) -> None:
    window, seen = ReplayWindow(), set[int]()
    for counter in counters:
        is_in_window = not seen or counter > max(seen) - REPLAY_WINDOW
        assert window.accept(counter) == (is_in_window and counter not in seen)
        seen.add(counter)


def test_a_datagram_that_was_overtaken_is_accepted() -> None:
    window = ReplayWindow()
    assert [window.accept(counter) for counter in (5, 9, 6, 6, 5, 9, 1 << 60, 9)] == [
        *(True, True, True, False, False, False, True, False)
    ]


def test_a_burst_is_limited_and_the_allowance_refills() -> None:
    limits, source = RateLimits(), ("10.0.0.1", 7)
    assert [limits.accept(source, 0) for _ in range(2 * BURST)].count(True) == BURST
    assert [limits.accept(source, 1000) for _ in range(2 * BURST)].count(True) == DATAGRAMS_PER_SECOND
    assert [limits.accept(source, 1 << 40) for _ in range(2 * BURST)].count(True) == BURST


def test_one_source_does_not_use_up_the_allowance_of_another() -> None:
    limits = RateLimits()
    for _ in range(2 * BURST):
        limits.accept(("10.0.0.1", 7), 0)
    assert limits.accept(("10.0.0.2", 7), 0)


def test_many_sources_are_not_all_remembered() -> None:
    limits = RateLimits()
    for port in range(10 * SOURCES_MAX):
        limits.accept(("10.0.0.1", port), 0)
    assert len(limits) == SOURCES_MAX + 1
    assert not limits.accept(("10.0.0.1", 20 * SOURCES_MAX), 0), "what they share is used up"
    assert limits.accept(("10.0.0.1", 1), 0), "those that are remembered have their own"
    assert limits.accept(("10.0.0.1", 20 * SOURCES_MAX), 60_000), "the idle ones are forgotten"
    assert len(limits) == 1
