"""The timeline of each group: why did it rebalance?

Law
    Lines per group, groups, lines in all and the length of a text are bounded. The group without new lines for the
    longest time is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from rota.coordinator.runtime.contract import Note

LINES_PER_GROUP_MAX: Final = 256
GROUPS_MAX: Final = 10_000
LINES_MAX: Final = 200_000
TEXT_CHARS_MAX: Final = 512  # of one field: ids and reasons are the clients' own, and may be a hundred times as long


@dataclass(frozen=True, slots=True)
class Line:
    """One note; `at_ms` is milliseconds since the epoch."""

    at_ms: int
    note: Note


class Timelines:
    """The last lines of each group."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[Line]] = OrderedDict()
        self._count = 0

    def add(self, group_id: str, at_ms: int, note: Note) -> None:
        """Add a line."""
        lines = self._lines.get(group_id)
        if lines is None:
            lines = self._lines[group_id] = deque(maxlen=LINES_PER_GROUP_MAX)
        else:
            self._lines.move_to_end(group_id)
        self._count -= len(lines)
        lines.append(Line(at_ms, note))
        self._count += len(lines)
        if len(self._lines) > GROUPS_MAX or self._count > LINES_MAX:
            self._count -= len(self._lines.popitem(last=False)[1])

    def __len__(self) -> int:
        """Return the number of lines of all groups."""
        return self._count

    def of(self, group_id: str) -> tuple[Line, ...]:
        """Return the group's lines, oldest first; none for an unknown group."""
        return tuple(self._lines.get(group_id, ()))


def brief(note: Note) -> Note:
    """Return the note with texts cut to TEXT_CHARS_MAX."""
    if not any(isinstance(value, str) and len(value) > TEXT_CHARS_MAX for value in note.fields.values()):
        return note
    return Note(note.event, {name: _brief(value) for name, value in note.fields.items()})


def _brief(value: object) -> object:
    return value[: TEXT_CHARS_MAX - 1] + "…" if isinstance(value, str) and len(value) > TEXT_CHARS_MAX else value
