"""Text for terminals and pipes: control characters as escapes, widths in columns, aligned tables. Pure.

Laws
    No character of a name reaches the output that moves the cursor, changes colours or reverses the reading order.
    A column is as wide as a terminal shows its widest cell: wide characters take two columns, combining ones none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from rota.protocol.dataclass import dataclass

ABSENT: Final = "-"
GAP: Final = "  "
_WIDE: Final = frozenset("WF")
_ZERO_WIDTH: Final = frozenset({"Mn", "Me"})


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings. A column of which all cells are numbers is aligned to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    title: str = ""
    empty: str = field(default="nothing to show", kw_only=True)

    def cells(self) -> list[list[str]]:
        """Return the rows as text."""
        return [[cell(value) for value in row] for row in self.rows]

    def is_numeric(self, column: int) -> bool:
        values = [row[column] for row in self.rows if row[column] is not None]
        return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def cell(value: object) -> str:
    """Return the text of a cell: `-` for None, yes and no, lists with commas, other values escaped."""
    if value is None or value == "":
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(cell, value)) or ABSENT
    return escaped(str(value))


def escaped(text: str) -> str:
    r"""Return the text with control, format and other invisible characters as \xNN, \uNNNN or \UNNNNNNNN."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def escaped_fields(line: str) -> str:
    """Return a line with tabs as they are and all else as `escaped` has it."""
    return "\t".join(map(escaped, line.split("\t")))


def _escape(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def width(text: str) -> int:
    """Return the columns that a terminal needs for the text."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def aligned(table: Table) -> Iterable[str]:
    """Return the lines of the table: the headings, then the rows. Lines do not end in blanks."""
    rows = table.cells()
    right = [table.is_numeric(column) for column in range(len(table.columns))]
    widths = [max(map(width, column)) for column in zip(table.columns, *rows, strict=True)]
    for row in ([*table.columns], *rows):
        padded = (_padded(*each) for each in zip(row, widths, right, strict=True))
        yield GAP.join(padded).rstrip()


def _padded(text: str, columns: int, to_the_right: bool) -> str:
    blanks = " " * (columns - width(text))
    return blanks + text if to_the_right else text + blanks
