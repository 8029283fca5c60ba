"""How many lines of the log one group may fill: a group of a thousand members that join writes two lines for each.

Law
    LG5 At most LINES_PER_GROUP_MAX lines of a group are written in a window of WINDOW_MS. After it one line says how
        many were left out; the group's timeline has their events. Other groups write theirs meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

WINDOW_MS: Final = 10_000
LINES_PER_GROUP_MAX: Final = 200  # a rebalance of members that are known writes four
GROUPS_MAX: Final = 10_000  # that are counted; beyond it a window ends early


class LineLimit:
    """Counts lines by group. `now_ms` is elapsed time."""

    __slots__ = ("_counts", "_ends_ms", "_left_out", "_now_ms")

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._ends_ms = now_ms() + WINDOW_MS
        self._counts: dict[str, int] = {}
        self._left_out: dict[str, int] = {}  # of windows that have ended

    def admit(self, group_id: str) -> bool:
        """Count a line of the group; return whether it is to be written."""
        counts = self._counts
        if self._now_ms() >= self._ends_ms or len(counts) >= GROUPS_MAX:
            self._end_window()
            counts = self._counts
        count = counts[group_id] = counts.get(group_id, 0) + 1
        return count <= LINES_PER_GROUP_MAX

    def take_left_out(self) -> Iterator[tuple[str, int]]:
        """Yield the groups with lines that were left out in windows that have ended, with their number; each once."""
        if self._now_ms() >= self._ends_ms:
            self._end_window()
        left_out, self._left_out = self._left_out, {}
        yield from left_out.items()

    def _end_window(self) -> None:
        self._ends_ms = self._now_ms() + WINDOW_MS
        for group_id, count in self._counts.items():
            if count > LINES_PER_GROUP_MAX and len(self._left_out) < GROUPS_MAX:
                more = count - LINES_PER_GROUP_MAX
                self._left_out[group_id] = self._left_out.get(group_id, 0) + more
        self._counts = {}
