"""A1. That a shard is loaded between two failures is in test_coordinator.py."""

from __future__ import annotations

from rota.coordinator.runtime.logged_failures import AGAIN_MS, CAUSES_MAX, LoggedFailures


def test_each_shard_has_its_own_failures() -> None:
    failures = LoggedFailures()
    assert [failures.is_new(shard, "full", 0) for shard in (1, 2, 1, 2)] == [True, True, False, False]


def test_a_failure_that_goes_on_for_long_is_the_same_one() -> None:
    failures = LoggedFailures()
    times = (0, AGAIN_MS - 1, 2 * AGAIN_MS - 2, 3 * AGAIN_MS - 2)
    assert [failures.is_new(1, "full", now_ms) for now_ms in times] == [True, False, False, True]


def test_causes_that_differ_each_time_take_bounded_memory() -> None:
    failures = LoggedFailures()
    assert all(failures.is_new(1, str(number), 0) for number in range(10 * CAUSES_MAX))
    assert len(failures._causes[1]) <= CAUSES_MAX
