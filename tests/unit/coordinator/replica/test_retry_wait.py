from __future__ import annotations

from rota.coordinator.replica.retry_wait import RetryWaits


def test_waits_double_up_to_the_limit() -> None:
    waits = RetryWaits[str](1_000, 5_000)
    assert waits.is_due("a", 0)
    now_ms, given = 0, []
    for _ in range(5):
        wait_ms = waits.delay("a", now_ms)
        assert not waits.is_due("a", now_ms + wait_ms - 1)
        assert waits.is_due("a", now_ms + wait_ms)
        given.append(wait_ms)
        now_ms += wait_ms
    assert given == [1_000, 2_000, 4_000, 5_000, 5_000]


def test_each_key_waits_for_itself() -> None:
    waits = RetryWaits[str](1_000, 5_000)
    waits.delay("a", 0)
    assert (waits.is_due("a", 500), waits.is_due("b", 500)) == (False, True)


def test_it_starts_over_after_success_and_after_a_quiet_while() -> None:
    waits = RetryWaits[str](1_000, 5_000)
    waits.delay("a", 0)
    waits.forget("a")
    waits.forget("a")
    assert (waits.is_due("a", 0), waits.delay("a", 0), waits.delay("a", 1_000)) == (True, 1_000, 2_000)
    assert waits.delay("a", 13_000) == 1_000
