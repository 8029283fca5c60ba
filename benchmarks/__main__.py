"""`make bench`: every row on Rota and, where Java is, on Apache Kafka, in turn; prints the ratios.

`python -m benchmarks [WORD …]` runs only the rows whose name contains one of the words.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack

from rich.console import Console
from rich.table import Table

from benchmarks.brokers import Running, has_kafka, kafka, rota
from benchmarks.rows import ROWS, Row


def main() -> None:
    console = Console()
    words = sys.argv[1:]
    rows = [row for row in ROWS if not words or any(word in row.name for word in words)]
    with ExitStack() as stack:
        ours = stack.enter_context(rota())
        theirs = stack.enter_context(kafka()) if has_kafka() else None
        if theirs is None:
            console.print("[yellow]Java or Maven is missing: no Apache Kafka beside Rota, no ratios[/]")
        table = Table("work", "unit", "Rota", "Apache Kafka", "ratio", "goal")
        start_ms = ours.started_s * 1000, theirs and theirs.started_s * 1000
        add(table, "start to the first answered ApiVersions", "ms", *start_ms, False, 1 / 8)
        add(table, "memory, idle", "MB", ours.memory_mb(), theirs and theirs.memory_mb(), False, 1 / 6)
        for row in rows:
            console.print(f"… {row.name}")
            measured(table, row, ours, theirs)
        add(table, "memory, after this load", "MB", ours.memory_mb(), theirs and theirs.memory_mb(), False, 1 / 6)
        console.print(table)


def measured(table: Table, row: Row, ours: Running, theirs: Running | None) -> None:
    mine = row.measure(ours.address)
    other = row.measure(theirs.address) if theirs is not None else None
    add(table, row.name, row.unit, mine, other, row.more, row.goal)


def add(table: Table, name: str, unit: str, mine: float, other: float | None, more: bool, goal: float) -> None:
    """One line; the ratio is Rota to Kafka, green when the goal is reached."""
    if other is None:
        table.add_row(name, unit, shown(mine), "-", "-", goal_text(goal, more))
        return
    ratio = mine / other
    reached = ratio >= goal if more else ratio <= goal
    colour = "green" if reached else "red"
    table.add_row(name, unit, shown(mine), shown(other), f"[{colour}]{ratio:.2f}[/]", goal_text(goal, more))


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def goal_text(goal: float, more: bool) -> str:
    return f"at {'least' if more else 'most'} {goal:.2g}"


if __name__ == "__main__":
    main()
