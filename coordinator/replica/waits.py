"""Waits for a log to reach an offset: acks, offset commits, replies of groups. Pure.

Laws
    L5  Every wait completes exactly once. Those that reach their offset complete in the order of their offsets.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import Generic, TypeVar

from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Complete(Generic[T]):
    """The wait of `token` is over."""

    token: T
    error: ErrorCode


class OffsetWaits(Generic[T]):
    """Waits for an offset, lowest first."""

    __slots__ = ("_waits",)

    def __init__(self) -> None:
        self._waits: list[tuple[int, int, T]] = []  # offset, deadline in ms, token

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, offset: int, deadline_ms: int, token: T) -> None:
        if not self._waits or self._waits[-1][0] <= offset:
            self._waits.append((offset, deadline_ms, token))
        else:
            at = bisect_right(self._waits, offset, key=itemgetter(0))
            self._waits.insert(at, (offset, deadline_ms, token))

    def reach(self, offset: int) -> list[Complete[T]]:
        """Complete the waits for offsets up to `offset`."""
        at = bisect_right(self._waits, offset, key=itemgetter(0))
        reached, self._waits = self._waits[:at], self._waits[at:]
        return [Complete(token, ErrorCode.NONE) for _, _, token in reached]

    def expire(self, now_ms: int) -> list[Complete[T]]:
        due = [token for _, deadline_ms, token in self._waits if deadline_ms <= now_ms]
        if due:
            self._waits = [wait for wait in self._waits if wait[1] > now_ms]
        return [Complete(token, ErrorCode.REQUEST_TIMED_OUT) for token in due]

    def fail(self, error: ErrorCode) -> list[Complete[T]]:
        waits, self._waits = self._waits, []
        return [Complete(token, error) for _, _, token in waits]

    def deadline_ms(self) -> int | None:
        """Return the first deadline; None if there is no wait."""
        return min([deadline_ms for _, deadline_ms, _ in self._waits], default=None)
