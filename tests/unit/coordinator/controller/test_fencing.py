from __future__ import annotations

from rota.coordinator.controller.fencing import CALM_MS, HOLD_MS, HOLD_MS_MAX, Fencing


def test_a_first_report_counts_at_once_and_for_that_registration_only() -> None:
    fencing = Fencing()
    fencing.report_dead(1, 10, 0)
    assert fencing.due({1: 10, 2: 10}, 0) == {1}
    assert fencing.due({1: 11}, 0) == frozenset()
    assert fencing.due({}, 0) == frozenset()
    assert fencing.next_ms(0) is None


def test_repeated_death_reports_fence_a_broker_with_growing_delays() -> None:
    fencing, now_ms, holds = Fencing(), 0, []
    for epoch in range(9):
        fencing.report_dead(1, epoch, now_ms)
        at_ms = fencing.next_ms(now_ms) or now_ms
        assert fencing.due({1: epoch}, at_ms - 1) == frozenset()
        assert fencing.due({1: epoch}, at_ms) == {1}
        holds.append(at_ms - now_ms)
        now_ms = at_ms
        fencing.fenced(1, now_ms)
    assert holds == [0, HOLD_MS, 2000, 4000, 8000, 16000, HOLD_MS_MAX, HOLD_MS_MAX, HOLD_MS_MAX]
    fencing.report_dead(1, 99, now_ms + CALM_MS)
    assert fencing.due({1: 99}, now_ms + CALM_MS) == {1}


def test_a_report_ends_when_the_broker_answers_or_is_fenced() -> None:
    fencing = Fencing()
    fencing.report_dead(1, 10, 0)
    fencing.report_alive(1)
    fencing.report_dead(2, 10, 0)
    fencing.fenced(2, 0)
    assert fencing.due({1: 10, 2: 10}, 0) == frozenset()


def test_a_repeated_report_does_not_start_the_hold_again() -> None:
    fencing = Fencing()
    fencing.fenced(1, 0)
    fencing.report_dead(1, 10, 0)
    fencing.report_dead(1, 10, HOLD_MS - 1)
    assert fencing.due({1: 10}, HOLD_MS) == {1}


def test_a_broker_that_was_cut_off_believes_no_report_for_a_while() -> None:
    """FN3. Neither an earlier one nor one that comes meanwhile; each of them can be withdrawn."""
    fencing = Fencing()
    fencing.report_dead(1, 10, 0)
    fencing.was_cut_off(100)
    fencing.report_dead(2, 10, 101)
    fencing.report_dead(3, 10, 101)
    assert fencing.next_ms(101) == 100 + HOLD_MS
    assert fencing.due({1: 10, 2: 10, 3: 10}, 99 + HOLD_MS) == frozenset()
    fencing.report_alive(3)
    assert fencing.due({1: 10, 2: 10, 3: 10}, 100 + HOLD_MS) == {1, 2}
    assert fencing.next_ms(100 + HOLD_MS) is None
