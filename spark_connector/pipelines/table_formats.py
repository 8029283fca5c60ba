"""The formats of a job's tables: Parquet, Delta Lake, Apache Iceberg.

Laws
    A micro-batch is in each table once, whatever the number of times that it runs.
"""

from __future__ import annotations

from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.delta_tables import LOG, DeltaTable
from rota.spark_connector.pipelines.iceberg_tables import IcebergTable
from rota.spark_connector.pipelines.maintenance import maintain
from rota.spark_connector.pipelines.table_files import BATCH, TableFiles, has_files, query_id

FORMATS: Final = ("parquet", "delta", "iceberg")


class Table(Protocol):
    """A table that micro-batches are added to."""

    def prepare(self, spark: SparkSession) -> None:
        """Check the tables before the query starts. Raises OptionError."""

    def restart(self, spark: SparkSession, number: int) -> None:
        """Prepare the first micro-batch of a run, which an earlier run may have written."""

    def append(self, rows: DataFrame, number: int) -> None:
        """Add the rows of a micro-batch. They have the column of its number."""

    def maintain(self, spark: SparkSession, number: int, compact_after: int, keep_days: int) -> None:
        """Compact and expire after a micro-batch."""


class ParquetTable:
    """Folders of Parquet files by day and micro-batch. One that runs again replaces what it had written."""

    def __init__(self, location: str, day: str, checkpoint: str) -> None:
        self._location, self._day, self._checkpoint = location, day, checkpoint
        self._files = TableFiles(location, day)

    def prepare(self, spark: SparkSession) -> None:
        """Finish an interrupted compaction. Raises OptionError for the folder of a Delta table."""
        if has_files(f"{self._location}/{LOG}"):
            raise OptionError("--format", "parquet", f"the format of the table in {self._location}: delta")
        self._files.recover()

    def restart(self, spark: SparkSession, number: int) -> None:
        """Remove the micro-batch. Raises OptionError for the table of another query, or with later micro-batches."""
        self._files.restart(query_id(self._checkpoint), number)

    def append(self, rows: DataFrame, number: int) -> None:
        """Write the folders of the micro-batch."""
        rows.write.mode("append").partitionBy(self._day, BATCH).parquet(self._location)

    def maintain(self, spark: SparkSession, number: int, compact_after: int, keep_days: int) -> None:
        """Compact and expire, see maintenance.py."""
        maintain(spark, self._files, number, compact_after, keep_days)


def open_table(kind: str, output: str, namespace: str, name: str, day: str, checkpoint: str) -> Table:
    """The table `name` of the format `kind`: in the folder `output`, for Iceberg in `namespace` (a catalog and a
    namespace in it). Raises OptionError."""
    if kind not in FORMATS:
        raise OptionError("--format", kind, f"one of {', '.join(FORMATS)}")
    if (kind == "iceberg") != bool(namespace) or (namespace and "." not in namespace):
        raise OptionError("--namespace", namespace or None, "CATALOG.NAMESPACE for iceberg, and for no other format")
    match kind:
        case "delta":
            return DeltaTable(f"{output}/{name}", day, checkpoint)
        case "iceberg":
            return IcebergTable(f"{namespace}.{name}", day, checkpoint)
    return ParquetTable(f"{output}/{name}", day, checkpoint)


def numbered(rows: DataFrame, number: int) -> DataFrame:
    """Rows with the number of their micro-batch."""
    return rows.withColumn(BATCH, F.lit(number))
