"""A table of a job as a table of Apache Iceberg, partitioned by day, with the number of the micro-batch in each row.

Laws
    A micro-batch is in the table once: the summary of its snapshot has the id of the query and its number, and a
    micro-batch that may have been written before is looked for there.
    When the snapshot is gone and rows of the micro-batch are there, nothing is written: the query ends with an error.
    It does so with an older copy of the checkpoint, too, and in the table of another query: a property of the table
    has the id of the one that created it.
    Compaction changes no row. A day is removed as by maintenance.py.
    No column has a name that Iceberg reserves: such a table is written, but it cannot be compacted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import StructType

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.locations import has_files
from rota.spark_connector.pipelines.maintenance import delete_old_days, is_due
from rota.spark_connector.pipelines.micro_batches import catalog_rows, has_later, newest_rows, quoted
from rota.spark_connector.pipelines.table_files import BATCH, older_checkpoint, query_id

PACKAGES: Final = {"4.0": "1.11.0", "4.1": "1.12.0"}  # the newest release for each version of Spark
QUERY: Final = "rota.query-id"  # in the summary of a snapshot, and among the properties of the table
NUMBER: Final = "rota.batch-id"
MIN_INPUT_FILES: Final = 5  # of a day, for them to be joined: Iceberg's default
PROPERTIES: Final = {"write.spark.accept-any-schema": "true"}  # a new field becomes a new column
PARTITION, KAFKA_PARTITION = "_partition", "_kafka_partition"  # the first is one of Iceberg's own columns
RESERVED: Final = frozenset(("_file", "_pos", "_deleted", "_spec_id", "_row_id", "_last_updated_sequence_number"))


class IcebergTable:
    """The table `name` (catalog, namespace and table, as in lake.shop.records), written by the query of
    `checkpoint`."""

    def __init__(self, name: str, day: str, checkpoint: str) -> None:
        self._catalog, _, self._in_catalog = name.partition(".")
        self._namespace = self._in_catalog.rpartition(".")[0]
        self._name = quoted(name)
        self._day, self._checkpoint = day, checkpoint
        self._written: int | None = None

    def prepare(self, spark: SparkSession) -> None:
        """Raises OptionError where Spark has no Iceberg or catalog, and for a table of another checkpoint."""
        if check_session(spark, self._name, self._catalog) and not has_files(f"{self._checkpoint}/offsets"):
            expected = f"a namespace without {self._name}, or one with the checkpoint of its tables"
            raise OptionError("--namespace", f"{self._catalog}.{self._namespace}", expected)

    def check(self, spark: SparkSession, number: int) -> None:
        """Look for the micro-batch, which an earlier run may have written. Raises OptionError when that is unknown, for
        later micro-batches, and for the table of another query."""
        if not self._exists(spark):
            return
        self._check_owner(spark)
        place, rows = f"{self._catalog}.{self._in_catalog}", catalog_rows(spark, self._name)
        summary = F.col("summary")
        snapshots = spark.table(f"{self._name}.snapshots")
        own = (summary[QUERY] == query_id(self._checkpoint)) & (summary[NUMBER] == str(number))
        if has_later(rows, number):
            raise older_checkpoint(place, number)
        if snapshots.where(own).limit(1).count():
            self._written = number
        elif rows.where(f"{BATCH} = {number}").limit(1).count():
            expected = (
                f"a table without rows of {BATCH} {number}, whose snapshot has expired or is of another checkpoint"
            )
            raise OptionError("--namespace", place, expected)

    def restart(self, spark: SparkSession, number: int) -> None:
        """Nothing is removed: `append` adds what is not there. The tables of earlier versions cannot be compacted."""
        if self._exists(spark) and PARTITION in catalog_rows(spark, self._name).columns:
            spark.sql(f"ALTER TABLE {self._name} RENAME COLUMN {PARTITION} TO {KAFKA_PARTITION}")

    def create(self, spark: SparkSession, schema: str | StructType) -> None:
        """Create the table, or add the columns that it does not have. Raises OptionError for a reserved name."""
        rows = stored(spark.createDataFrame([], schema))
        if not self._exists(spark):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS `{self._catalog}`.{self._namespace}")
            made = rows.writeTo(self._name).using("iceberg").partitionedBy(F.col(self._day))
            for name, value in {**PROPERTIES, QUERY: query_id(self._checkpoint)}.items():
                made = made.tableProperty(name, value)
            made.create()
        elif set(rows.columns) - set(catalog_rows(spark, self._name).columns):
            self._append(rows, {})

    def append(self, rows: DataFrame, number: int) -> None:
        """Add a micro-batch, unless the table has it."""
        if number == self._written:
            return
        if not self._exists(rows.sparkSession):
            self.create(rows.sparkSession, rows.schema)
        marks = {f"snapshot-property.{QUERY}": query_id(self._checkpoint), f"snapshot-property.{NUMBER}": str(number)}
        self._append(stored(rows), marks)

    def _append(self, rows: DataFrame, marks: dict[str, str]) -> None:
        # columns are matched by name; a new one need not be the last
        merge = {"mergeSchema": "true", "check-ordering": "false"}
        rows.writeTo(self._name).options(**marks, **merge).append()

    def newest(self, spark: SparkSession, before: int) -> DataFrame | None:
        """The rows of the newest micro-batch before `before`."""
        return newest_rows(catalog_rows(spark, self._name), before)

    def maintain(self, spark: SparkSession, number: int, compact_after: int, keep_days: int) -> None:
        """Remove old days and join small files, once in as many micro-batches as make that worth it."""
        if not is_due(number, compact_after):
            return
        delete_old_days(spark, self._name, self._day, keep_days, self._in_catalog)
        if number:
            files = min(MIN_INPUT_FILES, max(2, compact_after // 2))
            options = f"options => map('min-input-files', '{files}')"
            spark.sql(f"CALL `{self._catalog}`.system.rewrite_data_files(table => '{self._in_catalog}', {options})")

    def _check_owner(self, spark: SparkSession) -> None:
        rows = spark.sql(f"SHOW TBLPROPERTIES {self._name}").collect()
        owner = {row["key"]: row["value"] for row in rows}.get(QUERY)
        if owner not in (None, query_id(self._checkpoint)):
            expected = f"a namespace of this query, not of another one: its checkpoint has the id {owner}"
            raise OptionError("--namespace", f"{self._catalog}.{self._in_catalog}", expected)

    def _exists(self, spark: SparkSession) -> bool:
        return spark.catalog.tableExists(self._name)


def stored(rows: DataFrame) -> DataFrame:
    """The rows with the names of the table's columns. Raises OptionError for one that Iceberg reserves."""
    check_names(rows.columns)
    return rows.withColumnRenamed(PARTITION, KAFKA_PARTITION)


def check_names(columns: Iterable[str]) -> None:
    """Raises OptionError for a field of the values with a name that Iceberg reserves, or that another column gets."""
    if refused := sorted((RESERVED | {KAFKA_PARTITION}) & set(columns)):
        expected = f"parquet or delta for values with a field {refused[0]}, a name that Iceberg needs"
        raise OptionError("--format", "iceberg", expected)


def check_session(spark: SparkSession, name: str, catalog: str) -> bool:
    """Whether the table exists. Raises OptionError where Spark does not have Iceberg's package, or not the catalog."""
    release = ".".join(spark.version.split(".")[:2])
    if release not in PACKAGES:
        expected = f"parquet or delta, or used with PySpark {', '.join(PACKAGES)}: Iceberg has no release for {release}"
        raise OptionError("--format", "iceberg", expected)
    package = f"--packages org.apache.iceberg:iceberg-spark-runtime-{release}_2.13:{PACKAGES[release]}"
    conf = f"--conf spark.sql.catalog.{catalog}=org.apache.iceberg.spark.SparkCatalog, and the settings of the catalog"
    if not spark.conf.get(f"spark.sql.catalog.{catalog}", ""):
        raise OptionError("--format", "iceberg", f"used with Iceberg's package and a catalog: {package} {conf}")
    try:
        return spark.catalog.tableExists(name)
    except (PySparkException, Py4JError) as error:
        detail = str(error)[:300]
        raise OptionError("--namespace", catalog, f"in a catalog that answers, with {package} ({detail})") from None
