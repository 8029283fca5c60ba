"""Tables that were written by several micro-batches, as one plot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rota.spark_connector.pipelines.page import lags, main, rebalances, table

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def lag(batch: int, minute: int, partition: int, value: int | None, group: str = "g") -> dict[str, object]:
    start = START + minute * MINUTE
    window = {"window_start": start, "window_end": start + MINUTE}
    return {
        "batch_id": batch,
        **window,
        "group": group,
        "topic": "t",
        "partition": partition,
        "lag": value,
        "committed": 1,
    }


def generations(minute: int, *found: int, group: str = "g") -> dict[str, object]:
    start = START + minute * MINUTE
    return {"window_start": start, "window_end": start + MINUTE, "group": group, "generations": list(found)}


def test_the_lags_of_a_groups_partitions_are_added() -> None:
    assert lags([lag(0, 0, 0, 3), lag(0, 0, 1, 4), lag(0, 1, 0, 5)]) == {
        "g": [((START + MINUTE).timestamp(), 7), ((START + 2 * MINUTE).timestamp(), 5)]
    }


def test_the_last_measurement_holds() -> None:
    rows = [lag(10, 0, 0, 3), lag(9, 0, 0, 8)]
    assert [value for _, value in lags(rows)["g"]] == [3]


@pytest.mark.parametrize("values", [(None, 1), (1, None)])
def test_a_lag_that_is_not_known_makes_the_sum_unknown(values: tuple[int | None, int | None]) -> None:
    assert [value for _, value in lags([lag(0, 0, at, item) for at, item in enumerate(values)])["g"]] == [None]


def test_a_deleted_offset_is_not_counted() -> None:
    assert lags([lag(0, 0, 0, 3), lag(0, 0, 1, None) | {"committed": None}])["g"][0][1] == 3


def test_a_generation_counts_once() -> None:
    rows = [generations(0, 1, 2), generations(0, 2, 3), generations(1, 3), generations(2, 3, 4), generations(2)]
    assert [value for _, value in rebalances(rows)["g"]] == [3, 0, 1]
    assert [value for _, value in rebalances([generations(0)])["g"]] == [0]


def test_the_page_is_made_of_the_files(tmp_path: Path) -> None:
    for batch in (0, 1):
        for name, row in (("lag", lag(batch, batch, 0, 5)), ("rebalances", generations(batch, batch + 1))):
            folder = tmp_path / name / f"batch_id={batch}"
            folder.mkdir(parents=True)
            row.pop("batch_id", None)
            other = {**row, "group": "other"}
            pq.write_table(pa.Table.from_pylist([row, other]), folder / "part-0.parquet")
    (tmp_path / "lag" / "_SUCCESS").write_text("")
    assert sorted(row["batch_id"] for row in table(str(tmp_path), "lag")) == [0, 0, 1, 1]
    out = tmp_path / "page.svg"
    main([str(tmp_path), str(out), "--groups", "g", "--title", "Two minutes"])
    render = out.read_text()
    assert "Two minutes" in render
    assert render.count("<polyline") == 1
    assert "other" not in render
    main([str(tmp_path), str(out)])
    assert "other" in out.read_text()
