"""The log of peers that are refused: a client that tries again and again does not fill it. Pure.

Law
    N7  Of the same refusal of a host the first is written, then each tenth, hundredth, thousandth, with its count. Many
        hosts, or many reasons, write at most WRITTEN_MAX lines in ROUND_MS; the next line has the number of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rota.coordinator.scheduling.clock import Clock

REMEMBERED_MAX: Final = 1_024  # pairs of host and reason
ROUND_MS: Final = 60_000
WRITTEN_MAX: Final = 200  # lines within ROUND_MS


class RefusedPeers:
    """Counts refusals by host and reason. Forgets all of them when there are more than REMEMBERED_MAX."""

    def __init__(self, now_ms: Callable[[], int] | None = None) -> None:
        self._now_ms = now_ms or Clock().now_ms
        self._counts: dict[tuple[str, str], int] = {}
        self._since_ms, self._written, self._omitted = self._now_ms(), 0, 0

    def count(self, host: str, reason: str) -> dict[str, int] | None:
        """Count a refusal. Return the numbers of the line about it, or None if it has no line."""
        key = host, reason
        if key not in self._counts and len(self._counts) >= REMEMBERED_MAX:
            self._counts.clear()
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return self._line(count) if _is_power_of_ten(count) else None

    def _line(self, count: int) -> dict[str, int] | None:
        now_ms = self._now_ms()
        if now_ms - self._since_ms >= ROUND_MS:
            self._since_ms, self._written = now_ms, 0
        if self._written >= WRITTEN_MAX:
            self._omitted += 1
            return None
        self._written += 1
        omitted, self._omitted = self._omitted, 0
        return {"count": count, "omitted": omitted} if omitted else {"count": count}


def _is_power_of_ten(count: int) -> bool:
    return str(count).strip("0") == "1"
