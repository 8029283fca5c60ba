"""Progress of long work on standard error: drawn on a terminal, nothing elsewhere and without rich."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self


class Progress:
    """`with Progress("sent", "records") as progress: progress.advance(10)`. `total` None: not known."""

    def __init__(self, verb: str, unit: str, total: int | None = None) -> None:
        self._verb, self._unit, self._total = verb, unit, total
        self._drawn: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._drawn = _drawn(self._unit, self._total is not None)
        if self._drawn is not None:
            self._drawn.start()
            self._task = self._drawn.add_task(self._verb, total=self._total)
        return self

    def advance(self, count: int) -> None:
        """Add what was done."""
        if self._drawn is not None:
            self._drawn.advance(self._task, count)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn is not None:
            self._drawn.stop()


def _drawn(unit: str, has_total: bool) -> Any:
    """Return a progress of rich; None when it is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress
    except ModuleNotFoundError:
        return None
    bar = BarColumn() if has_total else SpinnerColumn()
    count = TextColumn("{task.completed:.0f} " + unit)
    columns = (TextColumn("{task.description}"), bar, count, TimeElapsedColumn())
    return RichProgress(*columns, console=Console(stderr=True), transient=True)
