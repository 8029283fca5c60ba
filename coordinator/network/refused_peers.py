"""The log of peers that are refused: a client that tries again and again does not fill it. Pure.

Law
    N7  Of the same refusal of a host the first is written, then each tenth, hundredth, thousandth, with its count.
"""

from __future__ import annotations

from typing import Final

REMEMBERED_MAX: Final = 1_024  # pairs of host and reason


class RefusedPeers:
    """Counts refusals by host and reason. Forgets all of them when there are more than REMEMBERED_MAX."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def count(self, host: str, reason: str) -> int | None:
        """Count a refusal. Return how many there were if this one is to be written, None if it is not."""
        key = host, reason
        if key not in self._counts and len(self._counts) >= REMEMBERED_MAX:
            self._counts.clear()
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return count if _is_power_of_ten(count) else None


def _is_power_of_ten(count: int) -> bool:
    return str(count).strip("0") == "1"
