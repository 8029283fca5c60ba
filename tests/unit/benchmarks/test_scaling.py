"""The tables of the scaling page."""

from __future__ import annotations

import pytest
from benchmarks.scaling import Point, print_tables


def test_a_sweep_has_a_table_and_a_column_of_limits_where_it_has_any(capsys: pytest.CaptureFixture[str]) -> None:
    print_tables([Point("fetch", "us of a Fetch", 1_000, 30, 0.5), Point("groups", "us of a commit", 100, 20.123)])
    assert capsys.readouterr().out.splitlines() == [
        "",
        "| fetch | us of a Fetch | limit |",
        "|---|---|---|",
        "| 1,000 | 30.00 | 0.50 |",
        "",
        "| groups | us of a commit |",
        "|---|---|",
        "| 100 | 20.12 |",
    ]
