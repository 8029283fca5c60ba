"""The two clocks of a broker: the time of day, which may step, and elapsed time, which may not.

Laws
    T5  A deadline is set and compared in `now_ms`: a step of the wall clock neither brings it closer nor moves it away.
    T6  A timestamp that outlives the process or reaches a client is `wall_ms`: it follows every step of the wall clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Reads `wall_s` (seconds since the epoch) and `monotonic_s` (seconds since some start that never changes).

    The monotonic clock of Linux stands still while the machine is suspended, so a session does not expire in the
    seconds after a resume because of a night that neither the broker nor its clients have seen.
    """

    __slots__ = ("_monotonic_s", "_wall_s")

    def __init__(
        self, wall_s: Callable[[], float] = time.time, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall_s, self._monotonic_s = wall_s, monotonic_s

    def now_ms(self) -> int:
        """Milliseconds of elapsed time, for timers, sessions and deadlines. Only differences mean anything."""
        return int(self._monotonic_s() * 1000)

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, for record timestamps, retention and whatever a client or a person reads."""
        return int(self._wall_s() * 1000)
