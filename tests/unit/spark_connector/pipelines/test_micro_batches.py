"""The number of a micro-batch in the rows; of Delta and Iceberg in tests/spark/test_tables.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from rota.spark_connector.pipelines.micro_batches import has_later
from rota.spark_connector.pipelines.table_files import BATCH


def counted(rows: int) -> Any:
    """Rows, by the number of those that a condition keeps."""
    requests: list[str] = []

    def where(condition: str) -> Any:
        requests.append(condition)
        return SimpleNamespace(limit=lambda most: SimpleNamespace(count=lambda: min(rows, most)))

    return cast(Any, SimpleNamespace(where=where, requests=requests))


def test_only_numbers_above_are_later() -> None:
    rows = counted(3)
    assert has_later(rows, 7)
    assert rows.requests == [f"{BATCH} > 7"]
    assert not has_later(counted(0), 7)
