"""The formats of a job's tables: Parquet, Delta Lake, Apache Iceberg.

Laws
    A micro-batch is in each table once, whatever the number of times that it runs.
    The first micro-batch of a run changes no table before all tables are found to belong to its checkpoint.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.checkpoint_tables import Place, check_tables, record_tables
from rota.spark_connector.pipelines.delta_tables import DeltaTable
from rota.spark_connector.pipelines.iceberg_tables import IcebergTable
from rota.spark_connector.pipelines.maintenance import Merge, maintain
from rota.spark_connector.pipelines.table_files import BATCH, TableFiles, check_checkpoint, is_delta, query_id

FORMATS: Final = ("parquet", "delta", "iceberg")
_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")  # of Hadoop's globs


class Table(Protocol):
    """A table that micro-batches are added to."""

    def prepare(self, spark: SparkSession) -> None:
        """Check the table before the query starts. Raises OptionError."""

    def check(self, spark: SparkSession, number: int) -> None:
        """Check the table before the first micro-batch of a run, and change nothing. Raises OptionError."""

    def restart(self, spark: SparkSession, number: int) -> None:
        """Prepare the first micro-batch of a run, which an earlier run may have written."""

    def create(self, spark: SparkSession, schema: str | StructType) -> None:
        """Create the table, so that it can be read without rows; add the columns of `schema` that it does not have."""

    def append(self, rows: DataFrame, number: int) -> None:
        """Add the rows of a micro-batch. They have the column of its number."""

    def newest(self, spark: SparkSession, before: int) -> DataFrame | None:
        """The rows of the newest micro-batch with rows among those before `before`, with the column of its number;
        None: there is none."""

    def maintain(self, spark: SparkSession, number: int, compact_after: int, keep_days: int) -> None:
        """Compact what was written before the micro-batch `number`, and remove old days."""


class ParquetTable:
    """Folders of Parquet files by day and micro-batch. One that runs again replaces what it had written. Compaction
    merges rows by `merge`; `schema` are the columns of all files, "": those that they have."""

    def __init__(
        self, location: str, day: str, checkpoint: str, schema: str = "", merge: Merge = lambda rows: rows
    ) -> None:
        self._location, self._day, self._checkpoint = location, day, checkpoint
        self._schema, self._merge = schema, merge
        self._files = TableFiles(location, day)

    def prepare(self, spark: SparkSession) -> None:
        """Create the folder, and finish an interrupted compaction. Raises OptionError for the folder of a Delta
        table."""
        if is_delta(self._location):
            raise OptionError("--format", "parquet", f"the format of the table in {self._location}: delta")
        self._files.create()
        self._files.recover()

    def check(self, spark: SparkSession, number: int) -> None:
        """Raises OptionError for the table of another query, or with later micro-batches."""
        self._files.check(query_id(self._checkpoint), number)

    def restart(self, spark: SparkSession, number: int) -> None:
        """Remove the micro-batch. Raises as `check`."""
        self._files.restart(query_id(self._checkpoint), number)

    def create(self, spark: SparkSession, schema: str | StructType) -> None:
        """Create the folder. Each file has the columns that it was written with."""
        self._files.create()

    def append(self, rows: DataFrame, number: int) -> None:
        """Write the folders of the micro-batch."""
        rows.write.mode("append").partitionBy(self._day, BATCH).parquet(self._location)

    def newest(self, spark: SparkSession, before: int) -> DataFrame | None:
        """The rows of the newest micro-batch before `before`."""
        number = self._files.newest(before)
        if number is None:
            return None
        reader = spark.read.option("basePath", self._location)
        reader = reader.schema(self._schema) if self._schema else reader  # older files lack columns
        return reader.parquet(*self._files.folders(number))

    def maintain(self, spark: SparkSession, number: int, compact_after: int, keep_days: int) -> None:
        """Compact and expire, see maintenance.py."""
        maintain(spark, self._files, number, compact_after, keep_days, self._schema, self._merge)


def open_table(place: Place, name: str, day: str, schema: str = "", merge: Merge = lambda rows: rows) -> Table:
    """The table `name` of a job; compaction of Parquet has `schema` and `merge`. Raises OptionError."""
    kind, namespace = place.table_format, place.namespace
    if kind not in FORMATS:
        raise OptionError("--format", kind, f"one of {', '.join(FORMATS)}")
    if (kind == "iceberg") != bool(namespace) or (namespace and "." not in namespace):
        raise OptionError("--namespace", namespace or None, "CATALOG.NAMESPACE for iceberg, and for no other format")
    if kind != "iceberg" and _PATTERN.search(place.output):
        expected = "a place without the characters *?[]{} and backslash, which are patterns in a path that Spark reads"
        raise OptionError("--output", place.output, expected)
    match kind:
        case "delta":
            return DeltaTable(f"{place.output}/{name}", day, place.checkpoint)
        case "iceberg":
            return IcebergTable(f"{namespace}.{name}", day, place.checkpoint)
    return ParquetTable(f"{place.output}/{name}", day, place.checkpoint, schema, merge)


def prepare_tables(spark: SparkSession, place: Place, tables: Mapping[str, Table]) -> None:
    """Before the query starts. Raises OptionError when the tables are those of another checkpoint, or the checkpoint is
    that of other tables."""
    for name in tables:
        check_checkpoint(place.output, name, place.checkpoint)
    check_tables(place, tables)
    for table in tables.values():
        table.prepare(spark)
    record_tables(place)


def restart_tables(spark: SparkSession, tables: Iterable[Table], number: int) -> None:
    """Before the first micro-batch of a run. Raises OptionError, and then has changed no table."""
    opened = list(tables)
    for table in opened:
        table.check(spark, number)
    for table in opened:
        table.restart(spark, number)


def number_of_folders(text: str) -> int:
    """For argparse, whose error it raises: fewer folders than none are always too many."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"it is {text}, and must be a number of at least 0")
    return int(text)


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of a job that writes tables."""
    parser.add_argument(
        "--compact-after", type=number_of_folders, default=100, metavar="N", help="folders of a day (%(default)s)"
    )
    parser.add_argument("--keep-days", type=int, default=0, metavar="N", help="older days are removed (never)")
    parser.add_argument("--format", dest="table_format", default="parquet", choices=FORMATS, help="(%(default)s)")
    parser.add_argument("--namespace", default="", metavar="CATALOG.NAMESPACE", help="of the tables of Iceberg")
