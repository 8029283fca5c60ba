"""The clock of a broker under test."""

from __future__ import annotations

import sys

import pytest

from rota.testing.clock import AdjustableClock


class Machine:
    def __init__(self) -> None:
        self.seconds = 100.0

    def read(self) -> float:
        return self.seconds


def test_both_times_advance_together_and_go_on() -> None:
    machine = Machine()
    clock = AdjustableClock(machine.read, machine.read)
    clock.advance(5_000)
    machine.seconds += 1
    assert (clock.now_ms(), clock.wall_ms()) == (106_000, 106_000)


def test_a_resumed_clock_continues_at_its_paused_time() -> None:
    machine = Machine()
    clock = AdjustableClock(machine.read, machine.read)
    clock.pause()
    clock.pause()
    machine.seconds += 50
    assert clock.now_ms() == 100_000
    assert clock.wall_ms() == 150_000
    clock.resume()
    machine.seconds += 1
    assert clock.now_ms() == 101_000


def test_a_paused_clock_advances_on_request() -> None:
    machine = Machine()
    clock = AdjustableClock(machine.read, machine.read)
    clock.pause()
    clock.advance(1_000)
    assert clock.now_ms() == 101_000
    machine.seconds += 7
    clock.resume()
    assert clock.now_ms() == 101_000


def test_a_negative_advance_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 ms"):
        AdjustableClock().advance(-1)


def test_a_clock_is_paused_any_number_of_times() -> None:
    machine = Machine()
    clock = AdjustableClock(machine.read, machine.read)
    for _ in range(sys.getrecursionlimit()):
        clock.pause()
        machine.seconds += 1
        clock.resume()
        machine.seconds += 0.5
    assert clock.now_ms() == 100_000 + 500 * sys.getrecursionlimit()
