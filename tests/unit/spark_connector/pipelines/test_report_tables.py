"""Which library reads which table; what Delta and Iceberg wrote is read in tests/spark/test_activity_tables.py."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.report_tables import DeltaRows, IcebergRows, ParquetRows, Tables
from rota.spark_connector.pipelines.table_files import DELTA_LOG


def test_folders_of_parquet_have_their_days_and_the_rows_from_a_day_on(tmp_path: Path) -> None:
    for day, batch in ((1, 0), (2, 0), (2, 1)):
        folder = tmp_path / "lag" / f"day=2026-01-0{day}" / f"batch_id={batch}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"lag": [day]}), folder / "part.parquet")
    table = Tables(str(tmp_path)).open("lag")
    assert isinstance(table, ParquetRows)
    assert list(table.days()) == [date(2026, 1, 1), date(2026, 1, 2)]
    assert sorted((row["lag"], row["batch_id"]) for row in table.rows(date(2026, 1, 2))) == [(2, 0), (2, 1)]
    assert len(table.rows(None)) == 3


def delta(folder: Path) -> None:
    (folder / "lag" / DELTA_LOG).mkdir(parents=True)
    (folder / "lag" / DELTA_LOG / "0.json").touch()


def iceberg(folder: Path, hint: str = "7") -> None:
    (folder / "lag" / "metadata").mkdir(parents=True)
    (folder / "lag" / "metadata" / "v7.metadata.json").touch()
    if hint:
        (folder / "lag" / "metadata" / "version-hint.text").write_text(hint)


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("deltalake", "pyiceberg", "pyiceberg.catalog"):
        monkeypatch.setitem(sys.modules, name, None)
    delta(tmp_path / "delta")
    with pytest.raises(OptionError, match="pip install deltalake"):
        Tables(f"{tmp_path}/delta").open("lag")
    iceberg(tmp_path / "iceberg")
    with pytest.raises(OptionError, match=r'pip install "pyiceberg\[pyarrow\]"'):
        Tables(f"{tmp_path}/iceberg").open("lag")
    with pytest.raises(OptionError, match=r'pip install "pyiceberg\[pyarrow\]"'):
        Tables("unused", "lake.shop").open("lag")


def test_a_table_of_iceberg_without_a_name_of_its_newest_metadata_needs_its_catalog(tmp_path: Path) -> None:
    iceberg(tmp_path, hint="")
    with pytest.raises(OptionError, match=r"--namespace CATALOG\.NAMESPACE"):
        Tables(str(tmp_path)).open("lag")


class NoSuchTableError(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (NoSuchTableError("no table shop.lag"), FileNotFoundError, "no table shop.lag"),
        (ValueError("no settings"), OptionError, r"a catalog of pyiceberg's settings that answers \(no settings\)"),
    ],
)
def test_a_catalog_without_the_table_or_without_settings_is_an_error_that_says_so(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, expected: type[Exception], message: str
) -> None:
    def load_catalog(name: str) -> object:
        assert name == "lake"
        raise raised

    library = ModuleType("pyiceberg")
    for name, content in (
        ("catalog", {"load_catalog": load_catalog}),
        ("exceptions", {"NoSuchTableError": NoSuchTableError}),
        ("table", {}),
    ):
        module = ModuleType(f"pyiceberg.{name}")
        vars(module).update(content)
        setattr(library, name, module)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "pyiceberg", library)
    with pytest.raises(expected, match=message):
        Tables("", "lake.shop").open("lag")


class Library(ModuleType):
    """A library that notes what it is asked for, and answers with rows."""

    def __init__(self, name: str, rows: pa.Table) -> None:
        super().__init__(name)
        self.requests: list[object] = []
        self.rows = rows

    # of deltalake

    def DeltaTable(self, location: str) -> str:
        return location

    def QueryBuilder(self) -> Library:
        return self

    def register(self, name: str, table: str) -> Library:
        self.requests += [name, table]
        return self

    def execute(self, sql: str) -> SimpleNamespace:
        self.requests.append(sql)
        return SimpleNamespace(read_all=lambda: self.rows)

    # of a table of pyiceberg

    def scan(self, **given: object) -> SimpleNamespace:
        self.requests.append(given)
        return SimpleNamespace(to_arrow=lambda: self.rows)


ROWS = pa.table({"day": [date(2026, 1, 1), None, date(2026, 1, 1)], "lag": [1, 2, 3]})


def test_delta_is_asked_for_the_rows_from_a_day_on_and_for_those_without_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library("deltalake", ROWS)
    monkeypatch.setitem(sys.modules, "deltalake", library)
    delta(tmp_path)
    table = Tables(str(tmp_path)).open("lag")
    assert isinstance(table, DeltaRows)
    assert [row["lag"] for row in table.rows(date(2026, 1, 1))] == [1, 2, 3]
    condition = "WHERE day IS NULL OR day >= DATE '2026-01-01'"
    assert library.requests == ["activity", f"{tmp_path}/lag", f"SELECT * FROM activity {condition}"]
    table.rows(None)
    assert library.requests[-1] == "SELECT * FROM activity"
    assert set(table.days()) == {date(2026, 1, 1)}


def test_iceberg_is_asked_for_the_same() -> None:
    library = Library("table", ROWS)
    table = IcebergRows(library)
    assert len(table.rows(date(2026, 1, 1))) == 3
    assert library.requests == [{"row_filter": "day IS NULL OR day >= '2026-01-01'"}]
    table.rows(None)
    assert library.requests[-1] == {}
    assert list(table.days()) == [date(2026, 1, 1)]
    assert library.requests[-1] == {"selected_fields": ("day",)}
