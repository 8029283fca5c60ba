"""A table of a job as a table of Delta Lake, partitioned by day, with the number of the micro-batch in each row.

Laws
    A micro-batch is in the table once: its commit has the id of the query and its number (`txnAppId`, `txnVersion`),
    and Delta skips a commit that the table has.
    It skips every number up to the newest one, too: with an older copy of the checkpoint, or in the table of another
    query, nothing is written.
    A first commit that a crash has interrupted leaves files that belong to no table; the next run writes it.
    Compaction changes no row. A day is removed as by maintenance.py.
"""

from __future__ import annotations

from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.maintenance import delete_old_days, is_due
from rota.spark_connector.pipelines.micro_batches import has_later, newest_rows
from rota.spark_connector.pipelines.table_files import TableFiles, is_delta, older_checkpoint, query_id

PACKAGES: Final = {"4.0": "4.4.0", "4.1": "4.4.0", "4.2": "4.4.0"}  # the newest release for each version of Spark
SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class DeltaTable:
    """The table in the folder `location`, written by the query of `checkpoint`."""

    def __init__(self, location: str, day: str, checkpoint: str) -> None:
        self._location, self._day, self._checkpoint = location, day, checkpoint
        self._files = TableFiles(location, day)

    def prepare(self, spark: SparkSession) -> None:
        """Raises OptionError where Spark has no Delta, and for a folder with other files."""
        check_session(spark)
        if not is_delta(self._location) and self._files.has_other_files():
            raise OptionError("--format", "delta", f"the format of the table in {self._location}: parquet")

    def check(self, spark: SparkSession, number: int) -> None:
        """Raises OptionError for later micro-batches, and for those of another query: the records of this one would be
        left out."""
        if is_delta(self._location):
            self._files.check(query_id(self._checkpoint), number)
            if has_later(self._rows(spark), number):
                raise older_checkpoint(self._location, number)

    def restart(self, spark: SparkSession, number: int) -> None:
        """Delta knows the micro-batches that it has."""
        if is_delta(self._location):
            self._files.claim(query_id(self._checkpoint))

    def create(self, spark: SparkSession, schema: str | StructType) -> None:
        """Create the table, or add the columns that it does not have."""
        rows = spark.createDataFrame([], schema)
        if not is_delta(self._location) or set(rows.columns) - set(self._rows(spark).columns):
            self._append(rows, {})
        self._files.claim(query_id(self._checkpoint))

    def append(self, rows: DataFrame, number: int) -> None:
        """Add a micro-batch, unless the table has it."""
        self._append(rows, {"txnAppId": query_id(self._checkpoint), "txnVersion": str(number)})
        self._files.claim(query_id(self._checkpoint))

    def _append(self, rows: DataFrame, once: dict[str, str]) -> None:
        writer = rows.write.format("delta").mode("append").partitionBy(self._day)
        writer.options(**once, mergeSchema="true").save(self._location)

    def newest(self, spark: SparkSession, before: int) -> DataFrame | None:
        """The rows of the newest micro-batch before `before`."""
        return newest_rows(self._rows(spark), before)

    def _rows(self, spark: SparkSession) -> DataFrame:
        return spark.read.format("delta").load(self._location)

    def maintain(self, spark: SparkSession, number: int, compact_after: int, keep_days: int) -> None:
        """Remove old days and join small files, once in as many micro-batches as make that worth it."""
        if not is_due(number, compact_after):
            return
        table = f"delta.`{self._location.replace('`', '``')}`"
        delete_old_days(spark, table, self._day, keep_days, self._location)
        if number:
            spark.sql(f"OPTIMIZE {table}")


def check_session(spark: SparkSession) -> None:
    """Raise OptionError where Spark does not have Delta's package and settings."""
    release = ".".join(spark.version.split(".")[:2])
    if release not in PACKAGES:
        expected = f"parquet, or used with PySpark {', '.join(PACKAGES)}: Delta has no release for {release}"
        raise OptionError("--format", "delta", expected)
    package = f"--packages io.delta:delta-spark_{release}_2.13:{PACKAGES[release]}"
    conf = " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items())
    try:
        is_set = all(value in (spark.conf.get(name, "") or "") for name, value in SETTINGS.items())
        if is_set:
            spark.sql("DESCRIBE DETAIL delta.`/`")
    except PySparkException as error:
        is_set = "DATA_SOURCE_NOT_FOUND" not in str(error) and "ClassNotFound" not in str(error)
    if not is_set:
        raise OptionError("--format", "delta", f"used with Delta's package and settings: spark-submit {package} {conf}")
