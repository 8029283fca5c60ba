"""Which table a job writes, and what is refused; the tables themselves are in tests/spark/test_tables.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.delta_tables import DeltaTable
from rota.spark_connector.pipelines.iceberg_tables import IcebergTable
from rota.spark_connector.pipelines.table_formats import FORMATS, ParquetTable, open_table

SPARK = cast(Any, SimpleNamespace(version="4.1.0"))


@pytest.mark.parametrize(
    ("kind", "namespace", "of"),
    [("parquet", "", ParquetTable), ("delta", "", DeltaTable), ("iceberg", "a.b", IcebergTable)],
)
def test_each_format_has_its_table(kind: str, namespace: str, of: type) -> None:
    assert kind in FORMATS
    assert type(open_table(kind, "/out", namespace, "records", "day", "/c")) is of


@pytest.mark.parametrize(
    ("kind", "namespace", "reason"),
    [
        ("csv", "", "one of parquet, delta, iceberg"),
        ("iceberg", "", "CATALOG.NAMESPACE for iceberg"),
        ("iceberg", "lake", "CATALOG.NAMESPACE for iceberg"),
        ("delta", "lake.shop", "for no other format"),
    ],
)
def test_what_does_not_fit_is_refused(kind: str, namespace: str, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        open_table(kind, "/out", namespace, "records", "day", "/c")


def test_no_parquet_files_are_written_into_a_delta_table(tmp_path: Path) -> None:
    table = ParquetTable(str(tmp_path), "day", "/c")
    table.prepare(SPARK)
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").touch()
    with pytest.raises(OptionError, match=r"the format of the table .*: delta"):
        table.prepare(SPARK)
