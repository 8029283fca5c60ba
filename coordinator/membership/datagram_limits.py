"""Which datagrams are handled: a bounded rate for each source, and none twice.

Laws
    FD8  A datagram is handled at most once; one that was delayed by up to REPLAY_WINDOW later ones is still handled.
    FD9  Of one source at most BURST datagrams are handled at once, and DATAGRAMS_PER_SECOND in the long run; what is
         remembered of sources is bounded. Only datagrams that would be handled count: anybody can send others in the
         name of a broker's address, and its own would be discarded. A MAC costs less than the reception before it.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.membership.contract import Address

REPLAY_WINDOW: Final = 256  # counters below the highest that are tracked
DATAGRAMS_PER_SECOND: Final = 200  # a broker sends another about ten
BURST: Final = 400
SOURCES_MAX: Final = 1024  # with an allowance of their own; all others share one
_FORGET_MS: Final = 1000 * BURST // DATAGRAMS_PER_SECOND  # an allowance is full again after this time
_SHARED: Final = ("", 0)


class ReplayWindow:
    """The counters of one life that were seen: the highest, and a bit for each of those right below it."""

    __slots__ = ("_highest", "_seen")

    def __init__(self) -> None:
        self._highest, self._seen = -1, 0

    def accept(self, counter: int) -> bool:
        """Remember `counter`; return whether it is new; a counter below the window counts as old."""
        ahead = counter - self._highest
        if ahead > 0:
            self._seen = (self._seen << ahead | 1) & _MASK if ahead < REPLAY_WINDOW else 1
            self._highest = counter
            return True
        if -ahead >= REPLAY_WINDOW or self._seen >> -ahead & 1:
            return False
        self._seen |= 1 << -ahead
        return True


_MASK: Final = (1 << REPLAY_WINDOW) - 1


class RateLimits:
    """An allowance for each source, refilled with time."""

    def __init__(self) -> None:
        self._left: dict[Address, tuple[float, int]] = {}  # datagrams, time of the last one
        self._cleaned_ms = 0

    def __len__(self) -> int:
        return len(self._left)

    def accept(self, source: Address, now_ms: int) -> bool:
        """Return whether the source has some of its allowance left, and take one datagram of it."""
        if source not in self._left and len(self._left) >= SOURCES_MAX:
            self._forget_idle(now_ms)
            if len(self._left) >= SOURCES_MAX:
                source = _SHARED
        left, last_ms = self._left.get(source, (float(BURST), now_ms))
        left = min(left + max(now_ms - last_ms, 0) * DATAGRAMS_PER_SECOND / 1000, BURST)
        if left < 1:
            self._left[source] = (left, now_ms)
            return False
        self._left[source] = (left - 1, now_ms)
        return True

    def _forget_idle(self, now_ms: int) -> None:
        if now_ms - self._cleaned_ms < _FORGET_MS:
            return
        self._cleaned_ms = now_ms
        self._left = {key: entry for key, entry in self._left.items() if now_ms - entry[1] < _FORGET_MS}
