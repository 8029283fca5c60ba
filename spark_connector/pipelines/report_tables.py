"""The rows of the tables of group_activity for the report, without Spark: Parquet, Delta and Iceberg.

Delta needs the package deltalake, Iceberg the package pyiceberg; a table in a folder is recognised by its files.

Laws
    Files of days before `since` are not read.
    Columns that older files of a table lack are null.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.locations import file_system, has_files, read_text
from rota.spark_connector.pipelines.report_rows import Row
from rota.spark_connector.pipelines.table_files import BATCH, TableFiles, folder_date, is_delta

DAY: Final = "day"  # as in tables.py, which imports Spark
FOLDERS: Final = pa.schema([(DAY, pa.string()), (BATCH, pa.int32())])
METADATA: Final = "metadata"  # the folder that makes a folder a table of Iceberg
HINT: Final = "version-hint.text"  # in it, of a Hadoop catalog
# Spark's timestamps (INT96) as nanoseconds end in the year 2262
_SPARK_FILES: Final = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")


class Tables(NamedTuple):
    """The tables of a job: in the folder `output`, or in the `namespace` of a catalog that pyiceberg knows."""

    output: str
    namespace: str = ""

    def open(self, name: str) -> StoredRows:
        """Open a table. Raises FileNotFoundError, and OptionError when the package of its format is not installed."""
        location = f"{self.output}/{name}"
        if self.namespace:
            return IcebergRows(_in_catalog(f"{self.namespace}.{name}"))
        if is_delta(location):
            return DeltaRows(location)
        if has_files(f"{location}/{METADATA}"):
            return IcebergRows(_in_folder(location))
        return ParquetRows(location)


class StoredRows(Protocol):
    """A table."""

    def days(self) -> Iterable[date]:
        """The days that have rows."""

    def rows(self, since: date | None) -> list[Row]:
        """The rows from the day `since` on, None: all, with the columns of day and micro-batch."""


class ParquetRows:
    """Folders of Parquet files by day and micro-batch."""

    def __init__(self, location: str) -> None:
        self._location = location

    def days(self) -> Iterable[date]:
        """The days that have rows."""
        names = TableFiles(self._location, DAY).days()
        return [day for name in names if (day := folder_date(name)) is not None]

    def rows(self, since: date | None) -> list[Row]:
        """The rows from the day `since` on, None: all. Raises FileNotFoundError."""
        files, path = file_system(self._location)
        folders = ds.partitioning(FOLDERS, flavor="hive")
        found = ds.dataset(path, filesystem=files, format=_SPARK_FILES, partitioning=folders)
        # folders of rows without a day have null
        kept = None if since is None else pc.field(DAY).is_null() | (pc.field(DAY) >= since.isoformat())
        parts = found.get_fragments(filter=kept)
        schemas = [found.schema, *(part.physical_schema for part in parts)]  # older files lack columns
        rows: list[Row] = found.replace_schema(pa.unify_schemas(schemas)).to_table(filter=kept).to_pylist()
        return rows


class DeltaRows:
    """A table of Delta Lake."""

    def __init__(self, location: str) -> None:
        try:
            import deltalake
        except ImportError:
            raise OptionError("report", location, "read with Delta's package: pip install deltalake") from None
        self._delta, self._table = deltalake, deltalake.DeltaTable(location)

    def days(self) -> Iterable[date]:
        """The days that have rows."""
        return {row[DAY] for row in self._query(f"SELECT DISTINCT {DAY} FROM activity") if row[DAY] is not None}

    def rows(self, since: date | None) -> list[Row]:
        """The rows from the day `since` on, None: all."""
        kept = "" if since is None else f" WHERE {DAY} IS NULL OR {DAY} >= DATE '{since.isoformat()}'"
        return self._query(f"SELECT * FROM activity{kept}")

    def _query(self, sql: str) -> list[Row]:
        # not to_pyarrow_dataset: Python aborts at its end
        answer = self._delta.QueryBuilder().register("activity", self._table).execute(sql)
        rows: list[Row] = pa.table(answer.read_all()).to_pylist()
        return rows


class IcebergRows:
    """A table of Apache Iceberg."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def days(self) -> Iterable[date]:
        """The days that have rows."""
        days = self._table.scan(selected_fields=(DAY,)).to_arrow()[DAY].unique().to_pylist()
        return [day for day in days if day is not None]

    def rows(self, since: date | None) -> list[Row]:
        """The rows from the day `since` on, None: all."""
        kept = {} if since is None else {"row_filter": f"{DAY} IS NULL OR {DAY} >= '{since.isoformat()}'"}
        rows: list[Row] = self._table.scan(**kept).to_arrow().to_pylist()
        return rows


def _in_folder(location: str) -> Any:
    """The table of a Hadoop catalog; that of another one has no name for its newest metadata."""
    if not read_text(f"{location}/{METADATA}/{HINT}"):
        raise OptionError("report", location, "a table of a Hadoop catalog, or used with --namespace CATALOG.NAMESPACE")
    return _pyiceberg(location).table.StaticTable.from_metadata(location)


def _in_catalog(name: str) -> Any:
    library = _pyiceberg(name)
    catalog, _, rest = name.partition(".")
    try:
        return library.catalog.load_catalog(catalog).load_table(rest)
    except library.exceptions.NoSuchTableError as error:
        raise FileNotFoundError(str(error)) from None
    except Exception as error:  # noqa: BLE001 - those of pyiceberg and of its catalogs have no common class
        raise OptionError("--namespace", name, f"in a catalog of pyiceberg's settings that answers ({error})") from None


def _pyiceberg(name: str) -> Any:
    try:
        import pyiceberg.catalog
        import pyiceberg.exceptions
        import pyiceberg.table
    except ImportError:
        package = 'read with Iceberg\'s package: pip install "pyiceberg[pyarrow]"'
        raise OptionError("report", name, package) from None
    return pyiceberg
