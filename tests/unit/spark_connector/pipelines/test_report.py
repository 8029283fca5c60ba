"""The tables of a folder as rows of charts; what a browser makes of them is in tests/browser/test_report.py."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rota.spark_connector.pipelines.report import chart_data, first_day, main, table

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
WINDOW = {"window_start": START, "window_end": END}
LAG = {**WINDOW, "topic": "t", "partition": 0, "committed": 1}


def write(folder: Path, name: str, batch: int, rows: list[dict[str, object]]) -> None:
    place = folder / name / f"batch_id={batch}"
    place.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), place / "part.parquet")


@pytest.fixture
def output(tmp_path: Path) -> str:
    write(tmp_path, "lag", 0, [{**LAG, "group": "a", "lag": 1}, {**LAG, "group": "b", "lag": 5}])
    write(tmp_path, "lag", 1, [{**LAG, "group": "a", "lag": 9}])
    write(tmp_path, "rebalances", 0, [{**WINDOW, "group": group, "generations": [1]} for group in "ab"])
    member = {"generation": 1, "member_id": "m", "instance_id": None, "client_id": "c", "client_host": "h"}
    write(tmp_path, "members", 0, [{**WINDOW, **member, "group": "a", "partitions": 1}])
    return str(tmp_path)


def test_groups_are_those_with_the_highest_lag_or_the_given_ones(output: str) -> None:
    groups, data = chart_data(output)
    assert groups == ["a", "b"]
    assert [row["lag"] for row in data["lags"]] == [9, 5]
    groups, data = chart_data(output, ["b"])
    assert {row["group"] for rows in data.values() for row in rows} == {"b"}
    assert {row["batch_id"] for row in table(output, "lag")} == {0, 1}


def test_the_newest_days_are_read_and_no_file_of_other_days(tmp_path: Path) -> None:
    member = {"generation": 1, "member_id": "m", "instance_id": None, "client_id": "c", "client_host": "h"}
    rows = {
        "lag": {**LAG, "group": "a", "lag": 1},
        "rebalances": {**WINDOW, "group": "a", "generations": [1]},
        "members": {**WINDOW, **member, "group": "a", "partitions": 1},
    }
    for name, row in rows.items():
        for day in range(1, 5):
            ending = {"window_end": datetime(2026, 1, day, tzinfo=UTC)}
            write(tmp_path / name, f"day=2026-01-{day:02}", day, [{**row, **ending}])
        (tmp_path / name / "day=2026-01-02" / "batch_id=2" / "part.parquet").write_bytes(b"not parquet")
    (tmp_path / "lag" / "day=+10000-01-01" / "batch_id=0").mkdir(parents=True)
    _, data = chart_data(str(tmp_path), days=2)
    assert len(data["partitions"]) == 2
    assert first_day(str(tmp_path), 2) == date(2026, 1, 3)
    assert first_day(str(tmp_path), 0) is None
    with pytest.raises(pa.ArrowInvalid):
        chart_data(str(tmp_path))


def test_a_day_of_the_future_hides_no_other_day(tmp_path: Path) -> None:
    for day in ("2026-01-01", "2026-01-03", "2999-12-31"):
        write(tmp_path / "lag", f"day={day}", 0, [{**LAG, "group": "a", "lag": 1}])
    assert first_day(str(tmp_path), 2, today=date(2026, 1, 4)) == date(2026, 1, 2)
    assert first_day(str(tmp_path), 2, today=date(2025, 1, 1)) is None


def test_a_time_after_2262_does_not_end_the_report(tmp_path: Path) -> None:
    """Spark writes timestamps as INT96, which pyarrow reads as nanoseconds unless it is told otherwise."""
    folder, far = tmp_path / "lag" / "day=9999-12-31" / "batch_id=0", datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    folder.mkdir(parents=True)
    rows = pa.table({"window_end": pa.array([far], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, folder / "part.parquet", use_deprecated_int96_timestamps=True)
    assert [row["window_end"].replace(tzinfo=UTC) for row in table(str(tmp_path), "lag")] == [far]


def test_more_days_than_a_calendar_has_are_all_days(tmp_path: Path) -> None:
    write(tmp_path / "lag", "day=2026-01-01", 0, [{**LAG, "group": "a", "lag": 1}])
    for days in (-1, 10**7, 10**12):
        assert first_day(str(tmp_path), days) is None


def test_without_the_library_or_the_tables_the_error_says_what_to_do(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert main([output, str(tmp_path / "report.html")]) == 2
    assert 'pip install "rota[report]"' in capsys.readouterr().err
    assert main([str(tmp_path / "missing"), str(tmp_path / "report.html")]) == 2
    assert "missing" in capsys.readouterr().err


def test_a_column_that_older_files_do_not_have_is_read(tmp_path: Path) -> None:
    for batch, rows in enumerate([{"lag": [1]}, {"lag": [2], "lag_seconds": [0.5]}]):
        folder = tmp_path / "lag" / "day=2026-01-01" / f"batch_id={batch}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table(rows), folder / "part.parquet")
    found = {row["batch_id"]: (row["lag"], row["lag_seconds"]) for row in table(str(tmp_path), "lag")}
    assert found == {0: (1, None), 1: (2, 0.5)}


@pytest.mark.parametrize("damaged", [False, True])
def test_tables_that_cannot_be_read_are_an_error_with_what_is_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damaged: bool
) -> None:
    if damaged:
        folder = tmp_path / "lag" / "day=2026-01-01" / "batch_id=1"
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").write_text("PAR1")
    assert main([str(tmp_path), str(tmp_path / "page.svg")]) == 2
    assert f"{tmp_path} must have the tables of a group_activity job" in capsys.readouterr().err
