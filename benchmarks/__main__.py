"""`make bench`: every row on Rota and, where Java is, on Apache Kafka, in turn; prints the ratios.

`python -m benchmarks [--rota-only] [--seconds S] [WORD …]` runs only the rows whose name contains one of the words.
The tables of the clients (client_consume, client_produce) follow, on the same Rota broker; a word picks them, too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from contextlib import ExitStack
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.brokers import Running, has_kafka, kafka, rota
from benchmarks.group_rows import GROUP_ROWS
from benchmarks.rows import ROWS, Row, settings
from benchmarks.transaction_rows import TRANSACTION_ROWS

STARTS = 5
CLIENTS = ("client_consume", "client_produce")


def main() -> None:
    console = Console()
    arguments = options()
    words = arguments.words
    settings.seconds = arguments.seconds
    rows = [
        row for row in (*ROWS, *GROUP_ROWS, *TRANSACTION_ROWS) if not words or any(word in row.name for word in words)
    ]
    start_s = usual_start_s()  # before the JVM that warms up beside it
    with ExitStack() as stack:
        ours = stack.enter_context(rota())
        theirs = stack.enter_context(kafka()) if has_kafka() and not arguments.rota_only else None
        if theirs is None:
            console.print("[yellow]Java or Maven is missing: no Apache Kafka beside Rota, no ratios[/]")
        table = Table("work", "unit", "Rota", "Apache Kafka", "ratio", "goal")
        start_ms = start_s * 1000, None if theirs is None else theirs.started_s * 1000
        add(table, "start to the first answered ApiVersions", "ms", *start_ms, False, 1 / 8)
        add(table, "memory, idle", "MB", ours.memory_mb(), weighed(theirs), False, 1 / 6)
        for row in rows:
            console.print(f"… {row.name}")
            measured(table, row, ours, theirs)
        add(table, "memory, after this load", "MB", ours.memory_mb(), weighed(theirs), False, 1 / 6)
        console.print(table)
        for name in CLIENTS:
            if not words or any(word in name for word in words):
                subprocess.run([sys.executable, "-m", f"benchmarks.{name}", ours.address], check=True)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Rota and Apache Kafka side by side")
    parser.add_argument("words", nargs="*", help="rows whose name contains one of these; default all")
    parser.add_argument("--rota-only", action="store_true", help="do not start Apache Kafka: figures, no ratios")
    parser.add_argument("--seconds", type=float, default=settings.seconds, help="how long a row of requests runs")
    return parser.parse_args()


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


def usual_start_s() -> float:
    """Of several starts on a fresh folder; the first of a machine's day reads its files from the disk."""
    starts = []
    for _ in range(STARTS):
        with rota() as broker:
            starts.append(broker.started_s)
    return median(starts)


def weighed(broker: Running | None) -> float | None:
    return None if broker is None else broker.memory_mb()


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def goal_text(goal: float, more: bool) -> str:
    return f"at {'least' if more else 'most'} {goal:.2g}"


if __name__ == "__main__":
    main()
