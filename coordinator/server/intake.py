"""How much of what peers sent is kept in memory at one time, over all connections. Pure.

Laws
    Requests under way and unfinished large frames stay below the limit, or there is only one of them.
    Whoever has room goes on; whoever waits gets it in the order of asking; small frames never wait for large ones.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol


class Asker(Protocol):
    """Who asks for room."""

    def admitted(self) -> None:
        """There is room now, and it is taken for you."""


class Intake:
    """Bytes that are held, out of `bytes_max`."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self._waiting: deque[tuple[Asker, int]] = deque()

    def admit(self, who: Asker, size: int) -> bool:
        """Take room for a large frame; False means wait for `who.admitted()`, which takes it."""
        if not self._waiting and self._fits(size):
            self.held_bytes += size
            return True
        self._waiting.append((who, size))
        return False

    def hold(self, size: int) -> None:
        """Count what is here already."""
        self.held_bytes += size

    def release(self, size: int) -> None:
        """Give room back, and to those who wait for it."""
        self.held_bytes -= size
        assert self.held_bytes >= 0, "more room was given back than taken"
        while self._waiting and self._fits(self._waiting[0][1]):
            who, wanted = self._waiting.popleft()
            self.held_bytes += wanted
            who.admitted()

    def forget(self, who: Asker) -> None:
        """`who` is gone and waits no more."""
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not who)
        self.release(0)

    def _fits(self, size: int) -> bool:
        return self.held_bytes == 0 or self.held_bytes + size <= self.bytes_max
