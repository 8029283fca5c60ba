"""Exponential backoff with jitter: the wait doubles with each failure up to a maximum. Pure: the caller passes the
random number.

Laws
    The wait after n failures is within 20 % of first * 2^(n-1), and at most `longest`.
    Without a failure the wait is 0.
"""

from __future__ import annotations

from typing import Final

JITTER: Final = 0.2
DOUBLINGS_MAX: Final = 62  # beyond it every bound is reached


def wait_ms(failures: int, first_ms: float, longest_ms: float, chance: float) -> float:
    """Return the ms to wait after this many consecutive failures; `chance` is a random number in [0, 1)."""
    if failures <= 0:
        return 0.0
    grown = float(first_ms) * (1 << min(failures - 1, DOUBLINGS_MAX))
    return min(grown, longest_ms) * (1 + JITTER * (2 * chance - 1))
