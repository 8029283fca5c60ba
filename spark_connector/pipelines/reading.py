"""Read the tables of a finished or running job, with the micro-batches of a window merged.

Laws
    A window has one row for each key, whatever the number of micro-batches with records of it.
    Counts are summed, generations are merged, and of measured values the last one is kept.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from rota.spark_connector.pipelines.tables import PARTITION, WINDOW

BATCH: Final = "batch_id"
TABLES: Final = ("commits", "lag", "rebalances", "members", "skipped")


def read(spark: SparkSession, output: str, table: str) -> DataFrame:
    """Read one of TABLES. Raises ValueError for another name."""
    if table not in TABLES:
        raise ValueError(f"there is no table {table}; there are {', '.join(TABLES)}")
    rows = spark.read.parquet(f"{output}/{table}")
    match table:
        case "commits":
            return _commits(rows)
        case "rebalances":
            return _rebalances(rows)
        case "skipped":
            return rows.groupBy(*WINDOW, "reason").agg(F.sum("records").alias("records"))
        case "members":
            return _newest(rows, "group", "generation")
    return _newest(rows, *PARTITION)


def _commits(rows: DataFrame) -> DataFrame:
    return rows.groupBy(*WINDOW, *PARTITION).agg(
        *(F.sum(name).alias(name) for name in ("commits", "forgotten")),
        F.min_by("first_offset", "source_offset").alias("first_offset"),
        F.max_by("last_offset", "source_offset").alias("last_offset"),
    )


def _rebalances(rows: DataFrame) -> DataFrame:
    """With the column `rebalances`: the number of generations in the window."""
    last = [F.max_by(name, "source_offset").alias(name) for name in ("generation", "protocol", "members")]
    merged = rows.groupBy(*WINDOW, "group").agg(
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("generations")))).alias("generations"),
        *last,
        F.max("members_max").alias("members_max"),
    )
    return merged.withColumn("rebalances", F.size("generations"))


def _newest(rows: DataFrame, *names: str) -> DataFrame:
    """The rows of the last micro-batch that has the window."""
    last = rows.groupBy(*WINDOW, *names).agg(F.max(BATCH).alias(BATCH))
    return rows.join(last, [*WINDOW, *names, BATCH], "left_semi").drop("source_offset")
