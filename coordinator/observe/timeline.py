"""What happened to each group, in order: the answer to "why did it rebalance?".

Law
    Bounded: so many lines a group, so many groups; the group that was quiet longest is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from rota.coordinator.group.effects import Note

LINES_PER_GROUP_MAX: Final = 256
GROUPS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened; `at_ms` is milliseconds since the epoch."""

    at_ms: int
    note: Note


class Timelines:
    """The last lines of each group."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[Line]] = OrderedDict()

    def add(self, group_id: str, at_ms: int, note: Note) -> None:
        """Remember one line."""
        lines = self._lines.get(group_id)
        if lines is None:
            lines = self._lines[group_id] = deque(maxlen=LINES_PER_GROUP_MAX)
            if len(self._lines) > GROUPS_MAX:
                self._lines.popitem(last=False)
        else:
            self._lines.move_to_end(group_id)
        lines.append(Line(at_ms, note))

    def of(self, group_id: str) -> tuple[Line, ...]:
        """The group's lines, oldest first; empty for an unknown group."""
        return tuple(self._lines.get(group_id, ()))
