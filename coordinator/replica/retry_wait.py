"""When to try again what failed: waits that grow from try to try, for each of many things. Pure.

Laws
    The wait doubles with each delay up to its limit, and starts over after twice that limit without one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class RetryWaits(Generic[K]):
    """Waits in ms, by key."""

    __slots__ = ("_due", "_max_ms", "_min_ms")

    def __init__(self, min_ms: int, max_ms: int) -> None:
        self._min_ms, self._max_ms = min_ms, max_ms
        self._due: dict[K, tuple[int, int]] = {}  # when it may be tried again, and the wait that led there

    def is_due(self, key: K, now_ms: int) -> bool:
        """Whether it may be tried now."""
        return key not in self._due or self._due[key][0] <= now_ms

    def delay(self, key: K, now_ms: int) -> int:
        """Note a try; returns how long the next one has to wait."""
        self._due = {other: due for other, due in self._due.items() if now_ms - due[0] < 2 * self._max_ms}
        wait_ms = min(2 * self._due[key][1], self._max_ms) if key in self._due else self._min_ms
        self._due[key] = now_ms + wait_ms, wait_ms
        return wait_ms

    def forget(self, key: K) -> None:
        """It went well: the next wait is the shortest again."""
        self._due.pop(key, None)
