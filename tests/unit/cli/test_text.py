"""Escapes, widths and aligned tables."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.text import Table, aligned, cell, escaped, width

TERMINAL_CONTROL = ("Cc", "Cf", "Cs", "Zl", "Zp")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("größe 訂單 🙂", "größe 訂單 🙂"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\r", "a\\x0ab\\x09c\\x0d"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(st.text())
def test_nothing_that_controls_a_terminal_is_left(text: str) -> None:
    assert not [char for char in escaped(text) if unicodedata.category(char) in TERMINAL_CONTROL]


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("訂單", 4), ("e\u0301", 1), ("ｆ", 2), ("größe", 5), ("🙂", 2)]
)
def test_the_width_is_that_of_a_terminal(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), ("", "-"), (True, "yes"), (False, "no"), (0, "0"), (1.25, "1.2"),
        ((1, 2), "1,2"), ([], "-"), ("\x00", "\\x00"),
    ],
)  # fmt: skip
def test_cells(value: object, text: str) -> None:
    assert cell(value) == text


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    table = Table(("TOPIC", "LAG", "MEMBER"), [("訂單", 5, "a"), ("orders-1", 12345, None), ("x", None, "bc")])
    assert list(aligned(table)) == [
        "TOPIC       LAG  MEMBER",
        "訂單          5  a",
        "orders-1  12345  -",
        "x             -  bc",
    ]


@given(st.lists(st.tuples(st.text(), st.text(min_size=1)), min_size=1))
def test_the_last_column_of_all_rows_begins_at_one_place(rows: list[tuple[str, str]]) -> None:
    table = Table(("A", "B"), [(left, "|") for left, _ in rows])
    assert len({width(line[: line.rindex("|")]) for line in list(aligned(table))[1:]}) == 1
