"""A table of a job as a table of Delta Lake, partitioned by day, with the number of the micro-batch in each row.

Laws
    A micro-batch is in the table once: its commit has the id of the query and its number (`txnAppId`, `txnVersion`),
    and Delta skips a commit that the table has.
    It skips every number up to the newest one, too: with an older copy of the checkpoint, or in the table of another
    query, nothing is written.
    Compaction changes no row. A day is removed as by maintenance.py.
"""

from __future__ import annotations

from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.maintenance import delete_old_days, is_due
from rota.spark_connector.pipelines.table_files import BATCH, TableFiles, has_files, older_checkpoint, query_id

PACKAGES: Final = {"4.0": "4.4.0", "4.1": "4.4.0", "4.2": "4.4.0"}  # the newest release for each version of Spark
SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
LOG: Final = "_delta_log"


class DeltaTable:
    """The table in the folder `location`, written by the query of `checkpoint`."""

    def __init__(self, location: str, day: str, checkpoint: str) -> None:
        self._location, self._day, self._checkpoint = location, day, checkpoint

    def prepare(self, spark: SparkSession) -> None:
        """Raises OptionError where Spark has no Delta, and for a folder with other files."""
        check_session(spark)
        if has_files(self._location) and not has_files(f"{self._location}/{LOG}"):
            raise OptionError("--format", "delta", f"the format of the table in {self._location}: parquet")

    def restart(self, spark: SparkSession, number: int) -> None:
        """Delta knows the micro-batches that it has. Raises OptionError for later ones, and for those of another query:
        the records of this one would be left out."""
        if has_files(f"{self._location}/{LOG}"):
            self._claim()
            rows = spark.read.format("delta").load(self._location)
            if rows.where(f"{BATCH} > {number}").limit(1).count():
                raise older_checkpoint(self._location, number)

    def append(self, rows: DataFrame, number: int) -> None:
        """Add a micro-batch, unless the table has it."""
        once = {"txnAppId": query_id(self._checkpoint), "txnVersion": str(number), "mergeSchema": "true"}
        rows.write.format("delta").mode("append").partitionBy(self._day).options(**once).save(self._location)
        self._claim()

    def _claim(self) -> None:
        TableFiles(self._location, self._day).claim(query_id(self._checkpoint))

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
