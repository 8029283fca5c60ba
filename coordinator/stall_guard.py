"""Notices that this process has stood still, as after SIGSTOP or a paused machine, and lets it serve nothing before the
cluster has confirmed that it still belongs to it.

Law
    CM2 A broker that stood still for so long that others may have taken it for dead serves no request until the
        metadata store has confirmed its registration. Requests that arrive in the meantime wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog

log = structlog.get_logger("rota.cluster")

TICK_MS: Final = 50
_TIMER: Final = "stall guard"


class TimerService(Protocol):
    """Timers by key."""

    def at(self, key: object, at_ms: int, call: Callable[[], None]) -> None:
        """Call `call` at that time."""

    def cancel(self, key: object) -> None:
        """Cancel the timer, if it is set."""


class Suspendable(Protocol):
    """The connections of a broker."""

    def suspend(self) -> None:
        """Serve no request."""

    def resume(self) -> None:
        """Serve requests again."""


class StallGuard:
    """Looks at the time every TICK_MS. A look that is more than `stall_ms_max` late finds a stall.

    `confirm` returns when this broker knows again what it may do. On uvloop, timers run before sockets are read, so
    that no request is served between the stall and its discovery.
    """

    def __init__(
        self,
        connections: Suspendable,
        confirm: Callable[[], Awaitable[None]],
        *,
        timers: TimerService,
        now_ms: Callable[[], int],
        stall_ms_max: int,
    ) -> None:
        self._connections, self._confirm = connections, confirm
        self._timers, self._now_ms, self._stall_ms_max = timers, now_ms, stall_ms_max
        self._last_ms = 0
        self._confirming: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._last_ms = self._now_ms()
        self._timers.at(_TIMER, self._last_ms + TICK_MS, self._tick)

    async def stop(self) -> None:
        """Look no more; serve whatever waits."""
        self._timers.cancel(_TIMER)
        if self._confirming is not None:
            self._confirming.cancel()
            await asyncio.wait({self._confirming})
        self._connections.resume()

    def _tick(self) -> None:
        now_ms = self._now_ms()
        stalled_ms, self._last_ms = now_ms - self._last_ms - TICK_MS, now_ms
        self._timers.at(_TIMER, now_ms + TICK_MS, self._tick)
        if stalled_ms > self._stall_ms_max:
            self._suspend(stalled_ms)

    def _suspend(self, stalled_ms: int) -> None:
        log.warning("This process stood still; it serves nothing until it is confirmed", stalled_ms=stalled_ms)
        self._connections.suspend()
        if self._confirming is not None:
            self._confirming.cancel()  # what it has read may be older than this stall
        self._confirming = asyncio.get_running_loop().create_task(self._resume())

    async def _resume(self) -> None:
        await self._confirm()
        self._confirming = None
        self._connections.resume()
