"""Rows of the benchmarks: which ones a word picks, and that a figure is the best of rounds in turn."""

from __future__ import annotations

from benchmarks.__main__ import is_reached
from benchmarks.rows import Row
from benchmarks.selection import ALL_ROWS, best_in_turn, chosen


def row_of(figures: list[float], measured: list[str], *, more: bool) -> Row:
    def measure(address: str) -> float:
        measured.append(address)
        return figures[len(measured) - 1]

    return Row("a row", "1/s", more, 1, measure)


def test_each_broker_has_the_best_of_its_rounds_which_are_in_turn() -> None:
    measured: list[str] = []
    row = row_of([1, 20, 30, 2, 3, 10], measured, more=True)
    assert best_in_turn(row, ["rota", "kafka"], 3) == [3, 30]
    assert measured == ["rota", "kafka", "kafka", "rota", "rota", "kafka"]


def test_the_best_of_times_is_the_least() -> None:
    assert best_in_turn(row_of([5, 4, 6], [], more=False), ["rota"], 3) == [4]


def test_a_word_picks_rows_of_groups_and_of_transactions() -> None:
    assert {row.name for row in chosen(["transactions", "OffsetFetch"])} == {
        "OffsetFetch of 1,000 partitions, 4 x 4",
        "transactions of 10 records, 1 producer",
        "transactions of 10 records, 16 producers",
    }


def test_without_a_word_all_rows_are_chosen_and_their_names_differ() -> None:
    assert chosen([]) == list(ALL_ROWS)
    assert len({row.name for row in ALL_ROWS}) == len(ALL_ROWS)


def test_a_goal_is_a_least_or_a_most() -> None:
    assert is_reached(2, 2, more=True)
    assert not is_reached(1.9, 2, more=True)
    assert is_reached(2, 2, more=False)
    assert not is_reached(2.1, 2, more=False)
