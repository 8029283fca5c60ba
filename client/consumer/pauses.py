"""Whom to leave alone for a while: brokers and partitions that failed, or that asked for it.

Laws
    The pause grows with each failure in a row, and is gone with the first success.
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

    def holds(self, who: Hashable, now_ms: int) -> bool:
        return self.left_ms(who, now_ms) > 0

    def left_ms(self, who: Hashable, now_ms: int) -> int:
        """How long it lasts yet; 0 when it is over."""
        return max(0, self._until.get(who, now_ms) - now_ms)

    def failed(self, who: Hashable, now_ms: int) -> None:
        self._failures[who] = failures = self._failures.get(who, 0) + 1
        self.pause(who, now_ms, int(wait_ms(failures, self._first_ms, self._longest_ms, random.random())))

    def pause(self, who: Hashable, now_ms: int, duration_ms: int) -> None:
        self._until[who] = now_ms + max(duration_ms, 1)

    def worked(self, who: Hashable) -> None:
        if self._failures:
            self._failures.pop(who, None)

    def next_end(self, now_ms: int) -> int | None:
        """When the first pause ends; those that are over are forgotten."""
        if not self._until:
            return None
        self._until = {who: until for who, until in self._until.items() if until > now_ms}
        return min(self._until.values(), default=None)
