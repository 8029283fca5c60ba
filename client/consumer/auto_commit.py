"""When an automatic commit is due. Pure: delivered_records.py has the offsets, commit_queue.py commits them.

Laws
    An automatic commit begins only in a poll-like call, before a rejoin or at the end; never by a timer.
    At most one is under way. After a retriable failure the next one comes after a backoff, not a whole interval.
"""

from __future__ import annotations

NEVER = float("inf")


class AutoCommit:
    """`due` on entry to a call; `began` when a commit leaves, `ended` when it is answered. Times in milliseconds."""

    def __init__(self, *, on: bool, interval_ms: float, backoff_ms: float, now_ms: float) -> None:
        self.on = on
        self._interval_ms, self._backoff_ms = interval_ms, backoff_ms
        self._next_ms = now_ms + interval_ms if on else NEVER
        self._under_way = False

    def due(self, now_ms: float) -> bool:
        """Whether a commit should leave now."""
        return now_ms >= self._next_ms and not self._under_way

    @property
    def next_ms(self) -> float:
        """Before that, `due` need not be asked."""
        return NEVER if self._under_way else self._next_ms

    def began(self, now_ms: float) -> None:
        self._under_way = True
        self._next_ms = now_ms + self._interval_ms

    def ended(self, now_ms: float, *, again: bool) -> None:
        """`again`: it failed in a way that may pass."""
        self._under_way = False
        if again:
            self._next_ms = min(self._next_ms, now_ms + self._backoff_ms)
