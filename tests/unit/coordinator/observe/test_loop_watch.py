"""A loop that stands still is noticed, counted, and named."""

from __future__ import annotations

import asyncio
import time

from structlog.testing import capture_logs

from rota.coordinator.observe.loop_watch import STALL_SECONDS, LoopWatch


def hold_the_loop() -> None:
    until = time.monotonic() + 4 * STALL_SECONDS
    while time.monotonic() < until:
        pass


async def turned(watch: LoopWatch) -> None:
    """Return after the watch has looked again."""
    before = watch.ticks
    async with asyncio.timeout(10):
        while watch.ticks < before + 2:
            await asyncio.sleep(0.001)


async def test_a_stall_is_counted_and_logged_with_the_running_callback() -> None:
    watch = LoopWatch()
    with capture_logs() as lines:
        watch.start()
        await turned(watch)
        asyncio.get_running_loop().call_soon(hold_the_loop)
        await turned(watch)
        watch.stop()
    assert watch.stalls >= 1
    assert watch.stalled_seconds >= 2 * STALL_SECONDS
    assert any(line["event"] == "Event loop stood still" and "hold_the_loop" in line["ran"] for line in lines)


async def test_log_lines_are_limited_and_count_the_stalls_left_out() -> None:
    watch = LoopWatch()
    with capture_logs() as lines:
        for at in (100.0, 100.1, 100.2, 105.0):
            watch._stalled(at, 0.06)
    assert watch.stalls == 4
    assert [line["not_logged"] for line in lines] == [0, 2]


async def test_after_stop_nothing_is_left() -> None:
    watch = LoopWatch()
    watch.start()
    watch.stop()
    assert watch._thread is not None
    assert not watch._thread.is_alive()
