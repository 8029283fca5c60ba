"""Which table a job writes, and what is refused; the tables themselves are in tests/spark/test_tables.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.checkpoint_tables import FILE, Place
from rota.spark_connector.pipelines.delta_tables import DeltaTable
from rota.spark_connector.pipelines.iceberg_tables import IcebergTable
from rota.spark_connector.pipelines.table_formats import (
    FORMATS,
    ParquetTable,
    open_table,
    prepare_tables,
    restart_tables,
)

SPARK = cast(Any, SimpleNamespace(version="4.1.0"))


@pytest.mark.parametrize(
    ("kind", "namespace", "of"),
    [("parquet", "", ParquetTable), ("delta", "", DeltaTable), ("iceberg", "a.b", IcebergTable)],
)
def test_each_format_has_its_table(kind: str, namespace: str, of: type) -> None:
    assert kind in FORMATS
    assert type(open_table(Place(kind, "/out", namespace, "/c"), "records", "day")) is of


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
        open_table(Place(kind, "/out", namespace, "/c"), "records", "day")


@pytest.mark.parametrize("output", ["/lake/{a}", "/lake/a*", "s3://bucket/a[1]", "/lake/a?", "/lake/a\\b"])
def test_a_folder_whose_name_spark_reads_as_a_pattern_is_refused(output: str) -> None:
    """It is written, and never found again by a compaction or by the next run."""
    for kind in ("parquet", "delta"):
        with pytest.raises(OptionError, match=r"--output is .* patterns"):
            open_table(Place(kind, output, "", "/c"), "records", "day")
    open_table(Place("iceberg", output, "a.b", "/c"), "records", "day")
    open_table(Place("parquet", "/lake/a b%20ö,#", "", "/c{}"), "records", "day")


def test_no_parquet_files_are_written_into_a_delta_table(tmp_path: Path) -> None:
    table = ParquetTable(str(tmp_path), "day", "/c")
    table.prepare(SPARK)
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").touch()
    with pytest.raises(OptionError, match=r"the format of the table .*: delta"):
        table.prepare(SPARK)


def parquet(folder: Path) -> Place:
    """A job whose checkpoint has progress."""
    checkpoint = folder / "_checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").touch()
    (checkpoint / "metadata").write_text('{"id":"own"}')
    return Place("parquet", str(folder), "", str(checkpoint))


def rows(folder: Path, table: str, *numbers: int) -> None:
    for number in numbers:
        (folder / table / "day=2026-01-01" / f"batch_id={number}").mkdir(parents=True)


def numbers(folder: Path, table: str) -> list[str]:
    return sorted(each.name for each in (folder / table).glob("day=*/*"))


def test_no_table_is_changed_when_one_of_them_has_later_micro_batches(tmp_path: Path) -> None:
    """The checkpoint is an older copy: the last micro-batch that a table has is not one that was interrupted."""
    place = parquet(tmp_path)
    tables = [open_table(place, name, "day") for name in ("commits", "lag")]
    rows(tmp_path, "commits", 0, 1)
    rows(tmp_path, "lag", 0, 1, 2)
    with pytest.raises(OptionError, match="an older copy"):
        restart_tables(SPARK, tables, 1)
    assert numbers(tmp_path, "commits") == ["batch_id=0", "batch_id=1"]
    restart_tables(SPARK, tables, 2)
    assert numbers(tmp_path, "lag") == ["batch_id=0", "batch_id=1"]


def test_no_table_is_changed_when_one_of_them_is_of_another_query(tmp_path: Path) -> None:
    place = parquet(tmp_path)
    tables = [open_table(place, name, "day") for name in ("commits", "lag")]
    rows(tmp_path, "commits", 0)
    (tmp_path / "lag").mkdir()
    (tmp_path / "lag" / "_query_id").write_text("other\n")
    with pytest.raises(OptionError, match="another one"):
        restart_tables(SPARK, tables, 0)
    assert numbers(tmp_path, "commits") == ["batch_id=0"]
    assert not (tmp_path / "commits" / "_query_id").exists()


def test_the_format_is_noted_when_nothing_speaks_against_it(tmp_path: Path) -> None:
    place = parquet(tmp_path)
    tables = {name: open_table(place, name, "day") for name in ("commits", "lag")}
    rows(tmp_path, "lag", 0)
    (tmp_path / "lag" / "_query_id").write_text("other\n")
    with pytest.raises(OptionError, match="that of another query"):
        prepare_tables(SPARK, place, tables)
    assert not (tmp_path / "_checkpoint" / FILE).exists()
    (tmp_path / "lag" / "_query_id").write_text("own\n")
    prepare_tables(SPARK, place, tables)
    assert (tmp_path / "_checkpoint" / FILE).exists()
    assert (tmp_path / "commits").is_dir(), "it can be read without rows"
    with pytest.raises(OptionError, match="parquet, the format of the tables of the checkpoint"):
        prepare_tables(SPARK, place._replace(table_format="iceberg", namespace="a.b"), tables)


def test_the_format_of_a_session_without_it_is_not_noted(tmp_path: Path) -> None:
    """The checkpoint of an earlier version would be refused with its own format then."""
    place = parquet(tmp_path)._replace(table_format="delta")
    with pytest.raises(OptionError, match="Delta has no release"):
        prepare_tables(cast(Any, SimpleNamespace(version="4.9.0")), place, {"lag": open_table(place, "lag", "day")})
    assert not (tmp_path / "_checkpoint" / FILE).exists()
