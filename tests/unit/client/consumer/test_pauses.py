"""Pauses that grow and end."""

from __future__ import annotations

from rota.client.consumer.pauses import Pauses


def test_nothing_is_paused_at_the_start() -> None:
    pauses = Pauses(100, 1000)
    assert not pauses.is_paused(1, 0)
    assert pauses.next_end(0) is None


def test_a_pause_grows_with_each_failure_up_to_the_longest() -> None:
    pauses = Pauses(100, 1000)
    ends = []
    for _ in range(6):
        pauses.failed("p", 0)
        end = pauses.next_end(0)
        assert end is not None
        assert pauses.is_paused("p", end - 1)
        assert not pauses.is_paused("p", end)
        ends.append(end)
    for end, expected in zip(ends, [100, 200, 400, 800, 1000, 1000], strict=True):
        assert 0.8 * expected - 1 <= end <= 1.2 * expected


def test_a_success_resets_the_backoff() -> None:
    pauses = Pauses(100, 1000)
    for _ in range(5):
        pauses.failed("p", 0)
    pauses.succeeded("p")
    pauses.succeeded("never failed")
    pauses.failed("p", 5000)
    assert (pauses.next_end(5000) or 0) <= 5120


def test_next_end_is_the_earliest_and_expired_pauses_are_removed() -> None:
    pauses = Pauses(100, 1000)
    pauses.pause(1, 0, 300)
    pauses.pause(2, 0, 200)
    assert pauses.left_ms(1, 100) == 200
    assert pauses.left_ms(3, 100) == pauses.left_ms(1, 400) == 0
    assert pauses.next_end(0) == 200
    assert pauses.next_end(250) == 300
    assert pauses.next_end(300) is None


def test_no_wait_at_all_is_still_a_pause() -> None:
    pauses = Pauses(0, 0)
    pauses.failed(1, 10)
    assert pauses.is_paused(1, 10)
    assert not pauses.is_paused(1, 11)
