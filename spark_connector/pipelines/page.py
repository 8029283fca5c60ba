"""Plot the tables of a job without Spark: from Parquet to SVG.

    python -m rota.spark_connector.pipelines.page activity groups.svg --groups orders,billing

Laws
    A window counts once: with its lags from the last micro-batch and its generations from all of them.
    A generation that an earlier window has is not a rebalance.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from rota.spark_connector.pipelines.plot import Points, svg

Rows = Iterable[Mapping[str, Any]]


def table(output: str, name: str) -> list[dict[str, Any]]:
    """All rows of a table, with the column batch_id. Raises FileNotFoundError."""
    rows: list[dict[str, Any]] = (
        ds.dataset(f"{output}/{name}", format="parquet", partitioning="hive").to_table().to_pylist()
    )
    return rows


def lags(rows: Rows) -> dict[str, Points]:
    """The lag of each group, summed over its partitions, at the end of each window; None when one is unknown."""
    last: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: int(row["batch_id"])):
        last[row["group"], row["window_end"], row["topic"], row["partition"]] = row
    sums: dict[tuple[str, Any], int | None] = {}
    for (group, end, *_), row in last.items():
        if row["committed"] is None:  # deleted
            continue
        before = sums.get((group, end), 0)
        sums[group, end] = None if before is None or row["lag"] is None else before + row["lag"]
    return _series({(group, end.timestamp()): value for (group, end), value in sums.items()})


def rebalances(rows: Rows) -> dict[str, Points]:
    """The number of new generations of each window, at its middle."""
    seen: dict[tuple[str, float], set[int]] = {}
    for row in rows:
        middle = (row["window_start"].timestamp() + row["window_end"].timestamp()) / 2
        seen.setdefault((row["group"], middle), set()).update(row["generations"])
    counts: dict[tuple[str, float], float | None] = {}
    newest: dict[str, int] = {}
    for (group, middle), generations in sorted(seen.items()):
        known = newest.get(group, -1)
        counts[group, middle] = sum(1 for generation in generations if generation > known)
        newest[group] = max([known, *generations])
    return _series(counts)


def _series(values: Mapping[tuple[str, float], float | None]) -> dict[str, Points]:
    series: dict[str, Points] = {}
    for group, at in sorted(values):
        series.setdefault(group, []).append((at, values[group, at]))
    return series


def render(output: str, *, groups: Iterable[str] = (), title: str = "Consumer groups") -> str:
    """The SVG of a job's tables, of `groups` or of all groups."""
    selected = set(groups)
    behind, generations = table(output, "lag"), table(output, "rebalances")
    windows = [(row["window_end"] - row["window_start"]).total_seconds() for row in behind or generations]
    kept = [[row for row in rows if not selected or row["group"] in selected] for rows in (behind, generations)]
    return svg(lags(kept[0]), rebalances(kept[1]), window_s=windows[0] if windows else 1.0, title=title)


def main(arguments: Sequence[str] | None = None) -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(prog="page", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", help="the --output of the job")
    parser.add_argument("svg", type=Path, help="the file to write")
    parser.add_argument("--groups", default="", help="groups, separated by commas (all)")
    parser.add_argument("--title", default="Consumer groups")
    given = parser.parse_args(arguments)
    groups = [group for group in given.groups.split(",") if group]
    given.svg.write_text(render(given.output, groups=groups, title=given.title), encoding="utf-8")


if __name__ == "__main__":
    main()
