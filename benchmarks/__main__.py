"""`make bench`: every row on Rota and, where Java is, on Apache Kafka, in turn; prints the ratios.

`python -m benchmarks [--rota-only] [--seconds S] [--rounds N] [WORD …]` runs only the rows whose name contains one of
the words. Each figure is the best of the rounds, in which the brokers are measured in turn. The tables of the clients
(client_consume, client_produce) follow, on the same Rota broker; a word picks them, too.
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
from benchmarks.joining import take_spent
from benchmarks.rows import Row, settings
from benchmarks.selection import best_in_turn, chosen

STARTS = 5
ROUNDS = 3
START_MS, IDLE_MB = 200, 30  # goals of Rota alone
CLIENTS = ("client_consume", "client_produce")


def main() -> None:
    console = Console()
    arguments = options()
    words = arguments.words
    settings.seconds = arguments.seconds
    rows = chosen(words)
    start_s = usual_start_s()  # before the JVM that warms up beside it
    with ExitStack() as stack:
        ours = stack.enter_context(rota())
        theirs = stack.enter_context(kafka()) if has_kafka() and not arguments.rota_only else None
        if theirs is None and not arguments.rota_only:
            console.print("[yellow]Java or Maven is missing: no Apache Kafka beside Rota, no ratios[/]")
        table = Table("work", "unit", "Rota", "Apache Kafka", "ratio", "goal")
        start_ms = start_s * 1000, None if theirs is None else theirs.started_s * 1000
        add(table, "start to the first answered ApiVersions", "ms", *start_ms, False, START_MS, is_ratio=False)
        add(table, "memory, idle", "MB", ours.memory_mb(), weighed(theirs), False, IDLE_MB, is_ratio=False)
        for row in rows:
            console.print(f"… {row.name}", end=" ")
            figures = measured(table, row, ours, theirs, arguments.rounds)
            shares = [str(take_spent(broker.address)) for broker in (ours, theirs) if broker is not None]
            lines = [f"{shown(figure)} {row.unit} ({share})" for figure, share in zip(figures, shares, strict=True)]
            console.print(*lines, sep=", ")  # a run may be ended early
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
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often a row is measured on each broker")
    return parser.parse_args()


def measured(table: Table, row: Row, ours: Running, theirs: Running | None, rounds: int) -> list[float]:
    """Add the row's line; return the figures of Rota and, if it runs, of Kafka."""
    best = best_in_turn(row, [ours.address] + ([] if theirs is None else [theirs.address]), rounds)
    add(table, row.name, row.unit, best[0], best[1] if len(best) > 1 else None, row.more, row.goal)
    return best


def add(
    table: Table,
    name: str,
    unit: str,
    mine: float,
    other: float | None,
    more: bool,
    goal: float,
    *,
    is_ratio: bool = True,
) -> None:
    """One line. `ratio` is Rota to Kafka; the goal is for the ratio or for Rota's own figure, green when reached."""
    ratio = None if other is None else mine / other
    measured = ratio if is_ratio else mine
    colour = "default" if measured is None else "green" if is_reached(measured, goal, more) else "red"
    figures = [shown(mine), "-" if other is None else shown(other), "-" if ratio is None else f"{ratio:.2f}"]
    at = 2 if is_ratio else 0
    figures[at] = f"[{colour}]{figures[at]}[/]"
    table.add_row(name, unit, *figures, f"at {'least' if more else 'most'} {goal:.3g}{'' if is_ratio else f' {unit}'}")


def is_reached(figure: float, goal: float, more: bool) -> bool:
    return figure >= goal if more else figure <= goal


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


if __name__ == "__main__":
    main()
