"""Law S18, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.simulation.loop import SimLoop, simulate

from rota.coordinator.metadata.silence import CALM_S, LATE_S, SILENCE_S_MAX, Silence

Play = Callable[[Silence, SimLoop], Coroutine[Any, Any, None]]


def silences(play: Play) -> list[float]:
    """When the server counted as silent; `play` is told on a connection."""

    async def run(loop: SimLoop) -> list[float]:
        at_s = list[float]()
        silence = Silence(lambda: at_s.append(round(loop.time(), 3)))
        silence.connected(True)
        await play(silence, loop)
        silence.close()
        return at_s

    return simulate(1, run)


def test_a_server_is_silent_while_a_request_waits_and_twice_as_long_after_each_that_was_left() -> None:
    async def play(silence: Silence, _: SimLoop) -> None:
        await asyncio.sleep(10)
        silence.sent()
        await asyncio.sleep(7 * SILENCE_S_MAX)

    assert silences(play) == [10 + SILENCE_S_MAX, 10 + 3 * SILENCE_S_MAX, 10 + 7 * SILENCE_S_MAX]


def test_whatever_the_server_sends_counts() -> None:
    async def play(silence: Silence, _: SimLoop) -> None:
        silence.sent()
        for _ in range(10):
            await asyncio.sleep(0.9 * SILENCE_S_MAX)
            silence.received()
        await asyncio.sleep(SILENCE_S_MAX)

    assert silences(play) == [10 * SILENCE_S_MAX]


def test_nothing_counts_while_no_request_waits() -> None:
    async def play(silence: Silence, _: SimLoop) -> None:
        for _ in range(3):
            silence.sent()
            silence.sent()
            silence.ended(is_answered=True)
            await asyncio.sleep(0.9 * SILENCE_S_MAX)
            silence.ended(is_answered=True)
            await asyncio.sleep(10 * SILENCE_S_MAX)

    assert silences(play) == []


def test_nothing_counts_without_a_connection() -> None:
    async def play(silence: Silence, _: SimLoop) -> None:
        silence.sent()
        await asyncio.sleep(0.9 * SILENCE_S_MAX)
        silence.connected(False)
        await asyncio.sleep(5 * SILENCE_S_MAX)
        silence.connected(True)
        await asyncio.sleep(0.9 * SILENCE_S_MAX)

    assert silences(play) == []


def test_a_store_that_is_always_slow_is_left_once() -> None:
    """A request whose connection was lost was not answered; calm makes the limit short again."""

    async def play(silence: Silence, _: SimLoop) -> None:
        silence.sent()
        await asyncio.sleep(SILENCE_S_MAX)
        silence.ended(is_answered=False)
        for seconds in (1.5 * SILENCE_S_MAX, 0.1, 1.5 * SILENCE_S_MAX):
            silence.sent()
            await asyncio.sleep(seconds)
            silence.ended(is_answered=True)
        await asyncio.sleep(CALM_S)
        silence.received()  # which is no long silence: nothing waits
        for seconds in (0.1, SILENCE_S_MAX):
            silence.sent()
            await asyncio.sleep(seconds)
            silence.ended(is_answered=True)
            await asyncio.sleep(2 * SILENCE_S_MAX)

    assert silences(play) == [SILENCE_S_MAX, round(7 * SILENCE_S_MAX + CALM_S + 0.2, 3)]


def test_a_store_that_is_slow_in_its_changes_alone_is_left_once() -> None:
    """A read on the next connection is answered at once, by any server: it says nothing of changes."""

    async def play(silence: Silence, _: SimLoop) -> None:
        for _ in range(20):
            silence.sent()
            await asyncio.sleep(0.01)
            silence.ended(is_answered=True)
            silence.sent()
            await asyncio.sleep(1.5 * SILENCE_S_MAX)
            silence.ended(is_answered=True)
            await asyncio.sleep(CALM_S / 10)

    assert len(silences(play)) == 1


def test_time_in_which_this_process_stood_still_does_not_count() -> None:
    async def play(silence: Silence, loop: SimLoop) -> None:
        silence.sent()
        await asyncio.sleep(0)
        loop.now += SILENCE_S_MAX + 2 * LATE_S
        await asyncio.sleep(0.9 * SILENCE_S_MAX)

    assert silences(play) == []
