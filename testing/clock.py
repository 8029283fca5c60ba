"""The clock of a broker under test: it runs with the machine's, and moves ahead or stands still on request."""

from __future__ import annotations

import time
from collections.abc import Callable

from rota.coordinator.scheduling.clock import Clock


class AdjustableClock(Clock):
    """Both clocks of a broker. `advance` moves them ahead together; `pause` stops elapsed time only."""

    __slots__ = ("_ahead_s", "_lost_s", "_monotonic", "_paused_at_s", "_wall")

    def __init__(
        self, wall_s: Callable[[], float] = time.time, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(self._read_wall, self._read_monotonic)
        self._wall, self._monotonic = wall_s, monotonic_s
        self._ahead_s = self._lost_s = 0.0  # what `advance` added, and how long elapsed time stood still
        self._paused_at_s: float | None = None

    def advance(self, by_ms: int) -> None:
        """Move ahead. Raises ValueError for a negative step: elapsed time never goes back."""
        if by_ms < 0:
            raise ValueError(f"a clock cannot advance by {by_ms} ms")
        self._ahead_s += by_ms / 1000
        if self._paused_at_s is not None:
            self._paused_at_s += by_ms / 1000

    def pause(self) -> None:
        """Stop elapsed time, as it stops for a suspended machine; the time of day goes on."""
        if self._paused_at_s is None:
            self._paused_at_s = self._read_monotonic()

    def resume(self) -> None:
        """Let elapsed time go on from where it stopped."""
        if self._paused_at_s is not None:
            self._lost_s = self._monotonic() + self._ahead_s - self._paused_at_s
            self._paused_at_s = None

    def _read_wall(self) -> float:
        return self._wall() + self._ahead_s

    def _read_monotonic(self) -> float:
        if self._paused_at_s is not None:
            return self._paused_at_s
        return self._monotonic() + self._ahead_s - self._lost_s
