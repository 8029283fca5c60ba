"""What a command prints: tables or JSON on standard output, errors and progress on standard error.

Laws
    With --json standard output holds JSON and nothing else: one document, or one object a line for a stream.
    An error that cannot be written changes no exit code.
    A table is drawn by rich on a terminal, and is aligned text in a pipe; without rich it is aligned text everywhere.
"""

from __future__ import annotations

import json
from typing import Any, TextIO

from rota.cli.text import Table, aligned, escaped, escaped_fields
from rota.transport.standard_streams import print_on_stderr


class Output:
    """Standard output of one command."""

    def __init__(self, stream: TextIO, *, as_json: bool) -> None:
        self.as_json = as_json
        self._stream = stream

    @property
    def is_terminal(self) -> bool:
        return self._stream.isatty()

    def show(self, document: Any, *tables: Table) -> None:
        """Print the document with --json, else the tables."""
        if self.as_json:
            self.write(json.dumps(document, indent=2 if self.is_terminal else None) + "\n")
            return
        for number, table in enumerate(tables):
            self.write("\n" if number else "")
            self._show_table(table)

    def event(self, document: Any, line: str, *, flush: bool = True) -> None:
        """Print one element of a stream: an object in a line of its own with --json, else the text."""
        self.write((json.dumps(document, separators=(",", ":")) if self.as_json else line) + "\n")
        if flush:
            self.flush()

    def raw(self, line: bytes) -> None:
        """Print a line of bytes as they are; on a terminal as text with escapes."""
        if self.is_terminal:
            self.write(escaped_fields(line.decode("utf-8", "backslashreplace")) + "\n")
        else:
            self._stream.flush()
            self._stream.buffer.write(line + b"\n")

    def flush(self) -> None:
        self._stream.flush()

    def note(self, line: str) -> None:
        """Print a line for people; nothing with --json."""
        if not self.as_json:
            self.write(f"{escaped(line)}\n")

    def write(self, text: str) -> None:
        self._stream.write(text)

    def _show_table(self, table: Table) -> None:
        if table.title:
            self.note(table.title)
        if not table.rows:
            self.note(table.empty)
        elif not (self.is_terminal and _draw_with_rich(table, self._stream)):
            self.write("".join(f"{line}\n" for line in aligned(table)))


def _draw_with_rich(table: Table, stream: TextIO) -> bool:
    """Draw the table; returns False when rich is not installed."""
    try:
        from rich.console import Console

        drawn = rich_table(table)
    except ModuleNotFoundError:
        return False
    Console(file=stream, highlight=False).print(drawn)
    return True


def rich_table(table: Table) -> Any:
    """Return the table for rich, which must be installed."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(table.columns):
        drawn.add_column(heading, justify="right" if table.is_numeric(number) else "left", overflow="fold")
    for row in table.cells():
        drawn.add_row(*map(Text, row))
    return drawn


def print_error(message: str, *, as_json: bool, exit_code: int, codes: tuple[str, ...] = ()) -> None:
    """Print one error on standard error: a line for people, or one JSON object with --json."""
    if as_json:
        text = json.dumps({"error": {"message": message, "codes": codes, "exit_code": exit_code}})
    else:
        text = "\n".join(f"rota: {escaped(line)}" for line in message.splitlines() or [""])
    print_on_stderr(text)
