"""Retry backoff of brokers and partitions: nothing is fetched from them during a pause.

Laws
    The pause grows with each failure in a row; a success ends the row.
"""

from __future__ import annotations

import random
from collections.abc import Hashable

from rota.client.network.backoff import wait_ms


class Pauses:
    """`first_ms` after the first failure, doubled with each, up to `longest_ms`."""

    def __init__(self, first_ms: int, longest_ms: int) -> None:
        self._first_ms, self._longest_ms = first_ms, longest_ms
        self._failures: dict[Hashable, int] = {}
        self._until: dict[Hashable, int] = {}

    def is_paused(self, key: Hashable, now_ms: int) -> bool:
        return self.left_ms(key, now_ms) > 0

    def left_ms(self, key: Hashable, now_ms: int) -> int:
        """How much longer the pause lasts; 0 without one."""
        return max(0, self._until.get(key, now_ms) - now_ms)

    def failed(self, key: Hashable, now_ms: int) -> None:
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        self.pause(key, now_ms, int(wait_ms(failures, self._first_ms, self._longest_ms, random.random())))

    def pause(self, key: Hashable, now_ms: int, duration_ms: int) -> None:
        self._until[key] = now_ms + max(duration_ms, 1)

    def succeeded(self, key: Hashable) -> None:
        if self._failures:
            self._failures.pop(key, None)

    def next_end(self, now_ms: int) -> int | None:
        """When the first pause ends, None without one."""
        if not self._until:
            return None
        self._until = {key: until for key, until in self._until.items() if until > now_ms}
        return min(self._until.values(), default=None)
