"""What a look at a group is compared with."""

from __future__ import annotations

from typing import Any

from rota.cli.group_watch import compare, table_of


def look(time_ms: int, lag: int | None, *committed: int | None) -> dict[str, dict[str, Any]]:
    offsets = [{"topic": "t", "partition": number, "committed": at} for number, at in enumerate(committed)]
    state = {"group": "g", "state": "Stable", "members": 1, "partitions": len(offsets), "lag": lag, "lag_seconds": None}
    return {"g": {**state, "time_ms": time_ms, "lag_change": None, "records_per_second": None, "offsets": offsets}}


def compared(before: dict[str, Any], now: dict[str, Any]) -> tuple[int | None, float | None]:
    compare(now, before)
    return now["g"]["lag_change"], now["g"]["records_per_second"]


def test_the_change_of_the_lag_and_the_rate_of_commits() -> None:
    assert compared(look(0, 10, 5, 5), look(2000, 4, 8, 15)) == (-6, 6.5)


def test_unknown_offsets_have_no_change() -> None:
    assert compared({}, look(0, 10, 5)) == (None, None)
    assert compared(look(0, None, None), look(1000, 5, 3)) == (None, None)
    assert compared(look(0, 5, 3), look(0, 5, 3)) == (0, None)


def test_the_table_without_groups_has_the_row_no_groups() -> None:
    assert table_of({}).cells()[0][0] == "no groups"
