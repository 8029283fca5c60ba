"""How long to wait before something is tried again: doubled with each failure, up to a bound, and never quite the same
for two clients. Pure: the chance comes in as a number.

Laws
    The wait after n failures lies within a fifth of first * 2^(n-1), and within a fifth of the longest beyond that.
    Nothing failed: nothing is waited for.
"""

from __future__ import annotations

from typing import Final

JITTER: Final = 0.2
DOUBLINGS_MAX: Final = 62  # beyond it every bound is reached


def wait_ms(failures: int, first_ms: float, longest_ms: float, chance: float) -> float:
    """Milliseconds to wait after so many failures in a row; `chance` is from 0 (included) to 1."""
    if failures <= 0:
        return 0.0
    grown = float(first_ms) * (1 << min(failures - 1, DOUBLINGS_MAX))
    return min(grown, longest_ms) * (1 + JITTER * (2 * chance - 1))
