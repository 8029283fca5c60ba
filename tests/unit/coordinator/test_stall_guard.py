from __future__ import annotations

import asyncio
from collections.abc import Callable

from rota.coordinator.scheduling.timers import TimerHeap
from rota.coordinator.stall_guard import TICK_MS, StallGuard

STALL_MS = 300


class World:
    """A clock by hand, connections that are served or not, and a store that confirms when it is let."""

    def __init__(self) -> None:
        self.now_ms, self.served, self.confirmations = 1_000, True, list[asyncio.Event]()
        self.timers = TimerHeap()
        self.guard = StallGuard(
            self, self.confirm, timers=self.timers, now_ms=lambda: self.now_ms, stall_ms_max=STALL_MS
        )
        self.guard.start()

    def suspend(self) -> None:
        self.served = False

    def resume(self) -> None:
        self.served = True

    async def confirm(self) -> None:
        self.confirmations.append(asyncio.Event())
        await self.confirmations[-1].wait()

    async def run(self, step_ms: int, steps: int = 1) -> None:
        for _ in range(steps):
            self.now_ms += step_ms
            for call in self.timers.due(self.now_ms):
                call()
            await asyncio.sleep(0)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0)


async def test_a_running_loop_is_never_suspended() -> None:
    world = World()
    await world.run(TICK_MS, 20)
    await world.run(STALL_MS, 5)
    assert world.served
    assert not world.confirmations


async def test_after_a_stall_nothing_is_served_before_the_confirmation() -> None:
    world = World()
    await world.run(TICK_MS + STALL_MS + 1)
    assert not world.served
    await world.run(TICK_MS, 20)
    assert not world.served
    world.confirmations[0].set()
    await world.until(lambda: world.served)
    assert len(world.confirmations) == 1


async def test_a_stall_during_the_confirmation_restarts_it() -> None:
    world = World()
    await world.run(10_000)
    await world.run(10_000)
    world.confirmations[0].set()
    await world.run(TICK_MS, 3)
    assert not world.served
    world.confirmations[1].set()
    await world.until(lambda: world.served)


async def test_a_stopped_guard_resumes_the_requests_and_checks_no_more() -> None:
    world = World()
    await world.run(10_000)
    await world.guard.stop()
    assert world.served
    await world.run(10_000)
    assert world.served
