"""Two sources of time in, two clocks out: neither takes anything from the other."""

from __future__ import annotations

from rota.coordinator.scheduling.clock import Clock


def test_each_clock_reads_its_own_source() -> None:
    wall_s, monotonic_s = 1_700_000_000.25, 12.5
    clock = Clock(lambda: wall_s, lambda: monotonic_s)
    assert (clock.wall_ms(), clock.now_ms()) == (1_700_000_000_250, 12_500)
    wall_s -= 3_600
    assert (clock.wall_ms(), clock.now_ms()) == (1_699_996_400_250, 12_500)
    monotonic_s += 1
    assert (clock.wall_ms(), clock.now_ms()) == (1_699_996_400_250, 13_500)


def test_the_clocks_of_the_system_are_the_default() -> None:
    clock = Clock()
    now_ms, wall_ms = clock.now_ms(), clock.wall_ms()
    assert clock.now_ms() >= now_ms >= 0
    assert wall_ms > 1_700_000_000_000
