"""Read the tables of a finished or running job, with the micro-batches of a window merged.

Laws
    A window has one row for each key, whatever the number of micro-batches with records of it.
    Merging rows that were merged before changes nothing: compaction does it.
    Counts are summed, generations are merged, and of measured values the last one is kept.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from rota.spark_connector.pipelines.micro_batches import catalog_rows, quoted
from rota.spark_connector.pipelines.table_files import BATCH, is_delta
from rota.spark_connector.pipelines.tables import CONSUMER, DAY, PARTITION, TIMELINE_ROW, WINDOW

_WINDOW: Final = "window_start timestamp, window_end timestamp"
_OF: Final = f"{_WINDOW}, group string, topic string, partition int"
_FOLDERS: Final = f"{DAY} date, {BATCH} int"
SCHEMAS: Final = {
    "commits": f"{_OF}, commits long, forgotten long, first_offset long, last_offset long, source_offset long",
    "lag": f"{_OF}, committed long, source_offset long, end_offset long, lag long, lag_seconds double",
    "rebalances": f"{_WINDOW}, group string, generations array<int>, generation int, protocol string, members int, "
    "members_max int, source_offset long",
    "members": f"{_WINDOW}, group string, generation int, member_id string, instance_id string, client_id string, "
    "client_host string, topics array<string>, partitions int, type string",
    "timeline": f"{_WINDOW}, group string, generation int, time timestamp, sequence long, type string, trigger string, "
    "reason string, client_reason string, members array<string>, member_count int, operation string, error_code int, "
    "count long, duration_ms long, state string, broker int",
    "skipped": f"{_WINDOW}, reason string, records long",
    "alerts": f"{_WINDOW}, group string, kind string, value long, limit long",
}
TABLES: Final = tuple(SCHEMAS)


def read(spark: SparkSession, output: str, table: str, namespace: str = "") -> DataFrame:
    """Read one of TABLES: of Parquet or Delta in the folder `output`, of Iceberg in `namespace` (a catalog and a
    namespace in it). Raises ValueError for another name."""
    if table not in TABLES:
        raise ValueError(f"there is no table {table}; there are {', '.join(TABLES)}")
    rows = merged(table, _stored(spark, output, table, namespace))
    if table == "rebalances":
        rows = rows.withColumn("rebalances", F.size("generations"))
    return named_members(rows) if table == "members" else rows.drop("source_offset")


def _stored(spark: SparkSession, output: str, table: str, namespace: str) -> DataFrame:
    """The rows of all micro-batches. Columns that a table of an earlier version does not have are null."""
    location = f"{output}/{table}"
    if namespace:
        found = catalog_rows(spark, quoted(f"{namespace}.{table}"))
    elif is_delta(location):
        found = spark.read.format("delta").load(location)
    else:
        return spark.read.schema(schema(table)).parquet(location)
    none = spark.createDataFrame([], schema(table))
    return none.unionByName(found, allowMissingColumns=True).select(*none.columns)


def schema(table: str) -> str:
    """The columns of the files and folders of a table. Columns that an older file does not have are null."""
    return f"{SCHEMAS[table]}, {_FOLDERS}"


def merged(table: str, rows: DataFrame) -> DataFrame:
    """The rows of several micro-batches as if they were of one, without the columns of the folders."""
    match table:
        case "commits":
            return _commits(rows)
        case "rebalances":
            return _rebalances(rows)
        case "skipped":
            return rows.groupBy(*WINDOW, "reason").agg(F.sum("records").alias("records"))
        case "alerts":
            return rows.groupBy(*WINDOW, "group", "kind", "limit").agg(F.max("value").alias("value"))
        case "timeline":
            return rows.drop(BATCH, DAY).dropDuplicates([*WINDOW, *TIMELINE_ROW])
        case "members":
            own = F.when(F.col("type") == CONSUMER, F.col("member_id")).otherwise("")
            return _newest(rows.withColumn("own", own), "group", "generation", "own").drop("own")
    return _newest(rows, *PARTITION)


def named_members(rows: DataFrame) -> DataFrame:
    """The members of each generation. A member of KIP-848 gets the fields of its own record, which is left out."""
    before = Window.partitionBy("group", "member_id").orderBy("window_end", "generation")
    for name in ("instance_id", "client_id", "client_host", "topics"):
        rows = rows.withColumn(name, F.last(name, ignorenulls=True).over(before))
    is_own = (F.col("type") == CONSUMER) & (F.col("generation") == 0)
    return rows.where(~F.coalesce(is_own, F.lit(False)))


def _commits(rows: DataFrame) -> DataFrame:
    return rows.groupBy(*WINDOW, *PARTITION).agg(
        *(F.sum(name).alias(name) for name in ("commits", "forgotten")),
        F.min_by("first_offset", "source_offset").alias("first_offset"),
        F.max_by("last_offset", "source_offset").alias("last_offset"),
        F.max("source_offset").alias("source_offset"),
    )


def _rebalances(rows: DataFrame) -> DataFrame:
    last = [F.max_by(name, "source_offset").alias(name) for name in ("generation", "protocol", "members")]
    return rows.groupBy(*WINDOW, "group").agg(
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("generations")))).alias("generations"),
        *last,
        F.max("members_max").alias("members_max"),
        F.max("source_offset").alias("source_offset"),
    )


def _newest(rows: DataFrame, *names: str) -> DataFrame:
    """The rows of the last micro-batch that has the window."""
    last = rows.groupBy(*WINDOW, *names).agg(F.max(BATCH).alias(BATCH))
    return rows.join(last, [*WINDOW, *names, BATCH], "left_semi").drop(BATCH, DAY)
