"""When an automatic commit is due. Pure: delivered_records.py has the offsets, commit_queue.py commits them.

Laws
    An automatic commit begins only in a poll-like call, before a rejoin or at the end; never by a timer.
    At most one is under way. After a retriable failure the next one comes after a backoff, not a whole interval.
"""

from __future__ import annotations

NEVER = float("inf")


class AutoCommit:
    """Call `begin` when a commit is sent and `complete` when it is answered. Times in milliseconds."""

    def __init__(self, *, on: bool, interval_ms: float, backoff_ms: float, now_ms: float) -> None:
        self.on = on
        self._interval_ms, self._backoff_ms = interval_ms, backoff_ms
        self._next_ms = now_ms + interval_ms if on else NEVER
        self._under_way = False

    def is_due(self, now_ms: float) -> bool:
        """Whether a commit is to be sent now."""
        return now_ms >= self._next_ms and not self._under_way

    @property
    def next_ms(self) -> float:
        """The time before which `is_due` is false."""
        return NEVER if self._under_way else self._next_ms

    def begin(self, now_ms: float) -> None:
        """A commit is sent."""
        self._under_way = True
        self._next_ms = now_ms + self._interval_ms

    def complete(self, now_ms: float, *, retry: bool) -> None:
        """The commit was answered. `retry`: it had a retriable failure, so the next one is due after the backoff."""
        self._under_way = False
        if retry:
            self._next_ms = min(self._next_ms, now_ms + self._backoff_ms)
