"""Tables of group_activity as the job writes them: two groups in ten windows, one of them with three generations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = "</script><img src=x onerror=alert(1)>"
MEMBERS = {1: ("a",), 2: ("a", "b"), 3: ("b",)}  # by generation


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    place = folder / name / "batch_id=0"
    place.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), place / "part.parquet")


def write_tables(folder: Path) -> None:
    """Two groups, `billing` and HOSTILE; `billing` has the generations of MEMBERS."""

    def window(minute: int) -> dict[str, object]:
        start = START + timedelta(minutes=minute)
        return {"window_start": start, "window_end": start + timedelta(minutes=1)}

    lag = {"topic": "orders", "committed": 1}
    rows = [
        {**window(minute), **lag, "group": group, "partition": partition, "lag": minute * factor + partition}
        for group, factor in (("billing", 5), (HOSTILE, 1))
        for minute in range(10)
        for partition in range(3)
    ]
    write(folder, "lag", rows)
    generations = [{**window(3 * each - 3), "group": "billing", "generations": [each]} for each in MEMBERS]
    write(folder, "rebalances", generations)
    members = [
        {**window(3 * each - 3), "group": "billing", "generation": each, "member_id": f"{name}-1", "client_id": name}
        for each, names in MEMBERS.items()
        for name in names
    ]
    more = {"instance_id": None, "client_host": "/127.0.0.1", "partitions": 2}
    write(folder, "members", [{**member, **more} for member in members])
