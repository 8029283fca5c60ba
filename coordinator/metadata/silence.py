"""A server that says nothing while requests wait for its answers: after a while another one is asked.

Laws
    S18  A server that sends nothing while a request waits for its answer is left after SILENCE_S_MAX, for another one
         in the same session: no end of the connection tells that its machine failed, or its network was cut. After each
         one that was left, the next may be silent for twice as long, until none was silent for so long in CALM_S: a
         store that is always slow, perhaps in its changes alone, is not left for ever. Time in which this process stood
         still does not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

SILENCE_S_MAX: Final = 2.0  # a disk that is slow to write takes one
CALM_S: Final = 60.0
LATE_S: Final = 0.1  # of a timer: this process stood still


class SilenceLimit:
    """How long the server may be silent. Pure: times come in. `begin` it whenever the time before does not count."""

    __slots__ = ("_limit_s", "_since_s", "_slow_s")

    def __init__(self) -> None:
        self._since_s = self._slow_s = 0.0  # slow: the end of the last silence that was longer than SILENCE_S_MAX
        self._limit_s = SILENCE_S_MAX

    def begin(self, now_s: float) -> None:
        """Count from now on."""
        self._since_s = now_s

    def received(self, now_s: float) -> None:
        """The server has sent something while a request waited."""
        if now_s - self._since_s > SILENCE_S_MAX:
            self._slow_s = now_s
        elif now_s - self._slow_s >= CALM_S:
            self._limit_s = SILENCE_S_MAX
        self._since_s = now_s

    def left_s(self, now_s: float) -> float:
        """Return how long it may still be silent; 0 or less: it is to be left."""
        return self._since_s + self._limit_s - now_s

    def exceeded(self, now_s: float) -> None:
        """The server was left."""
        self._since_s = self._slow_s = now_s
        self._limit_s *= 2


class Silence:
    """Calls `on_silent` in the running loop when the limit is exceeded. Tell it what is sent and received."""

    def __init__(self, on_silent: Callable[[], None]) -> None:
        self._on_silent, self._limit = on_silent, SilenceLimit()
        self._loop, self._timer = asyncio.get_running_loop(), None
        self._waiting, self._is_connected = 0, False

    _timer: asyncio.TimerHandle | None

    def sent(self) -> None:
        """A request waits for its answer from now on."""
        if not self._waiting:
            self._limit.begin(self._loop.time())
        self._waiting += 1
        if self._timer is None:
            self._look_later()

    def ended(self, *, is_answered: bool) -> None:
        """A request waits no more: it was answered, or the connection was lost."""
        if is_answered:
            self.received()
        self._waiting -= 1

    def received(self) -> None:
        """The server has sent something."""
        if self._waiting:
            self._limit.received(self._loop.time())
        else:
            self._limit.begin(self._loop.time())

    def connected(self, is_connected: bool) -> None:
        """A connection was made, or lost: then no silence counts."""
        self._is_connected = is_connected
        self._limit.begin(self._loop.time())

    def close(self) -> None:
        """Call nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self) -> None:
        now_s = self._loop.time()
        due_s = now_s + max(self._limit.left_s(now_s), 0)
        self._timer = self._loop.call_at(due_s, self._look, due_s)

    def _look(self, due_s: float) -> None:
        self._timer, now_s = None, self._loop.time()
        if not self._waiting:
            return
        if not self._is_connected or now_s - due_s > LATE_S:
            self._limit.begin(now_s)
        elif self._limit.left_s(now_s) <= 0:
            self._limit.exceeded(now_s)
            self._on_silent()
        self._look_later()
