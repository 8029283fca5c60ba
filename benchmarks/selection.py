"""The rows of all tables, and how a row is measured: the best of several rounds, on the brokers in turn."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.group_rows import GROUP_ROWS
from benchmarks.rows import ROWS, Row
from benchmarks.transaction_rows import TRANSACTION_ROWS

ALL_ROWS = (*ROWS, *GROUP_ROWS, *TRANSACTION_ROWS)


def chosen(words: Sequence[str]) -> list[Row]:
    """The rows whose name contains one of the words; all of them without a word."""
    return [row for row in ALL_ROWS if not words or any(word in row.name for word in words)]


def best_in_turn(row: Row, addresses: Sequence[str], rounds: int) -> list[float]:
    """The best figure of each broker. The order changes with each round, so that none is always the first."""
    figures: dict[str, list[float]] = {address: [] for address in addresses}
    for number in range(rounds):
        for address in addresses if number % 2 == 0 else reversed(addresses):
            figures[address].append(row.measure(address))
    best = max if row.more else min
    return [best(figures[address]) for address in addresses]
