"""How much of what peers sent is kept in memory at one time, over all connections. Pure.

Laws
    Only bytes that came count: a peer that announces a large frame and sends nothing takes nobody's room.
    Above the limit one unfinished large frame at a time is read on; the others wait, small frames never do.
    Whoever waits goes on as soon as there is room, or in the order of asking when it is its turn to be the one.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol


class Asker(Protocol):
    """Whose large frame is coming in."""

    def admitted(self) -> None:
        """Read on."""


class RequestMemoryPool:
    """Bytes that are held, out of `bytes_max`."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self._one: Asker | None = None  # reads on above the limit, so that something is finished
        self._waiting: deque[Asker] = deque()

    def goes_on(self, who: Asker) -> bool:
        """May `who` read more of its large frame? False means wait for `who.admitted()`. Told `done` in the end."""
        if self.held_bytes <= self.bytes_max or self._one is who:
            return True
        if self._one is None:
            self._one = who
            return True
        self._waiting.append(who)
        return False

    def hold(self, size: int) -> None:
        """Count what came."""
        self.held_bytes += size

    def release(self, size: int) -> None:
        """Give room back, and to those who wait for it."""
        self.held_bytes -= size
        assert self.held_bytes >= 0, "more room was given back than taken"
        while self._waiting and self.held_bytes <= self.bytes_max:
            self._waiting.popleft().admitted()

    def done(self, who: Asker) -> None:
        """Its large frame is whole, or `who` is gone."""
        if who in self._waiting:
            self._waiting.remove(who)
        if self._one is who:
            self._one = self._waiting.popleft() if self._waiting else None
            if self._one is not None:
                self._one.admitted()
