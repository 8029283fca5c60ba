"""From the events of one micro-batch to the rows of each table: only DataFrames, nothing is read or written.

Laws
    Rows do not depend on the order in which Spark reads the events: the records of a group lie in one partition, and
    their offsets are their order.
    Of one window there are rows in each micro-batch that had records of it; reading.py says how they go together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from rota.spark_connector.pipelines.decode import COMMIT, EVENT, FORGOTTEN, GROUP, SKIPPED, decoded
from rota.spark_connector.pipelines.lag import Lag, Standing

WINDOW: Final = ("window_start", "window_end")
PARTITION: Final = ("group", "topic", "partition")
LAG: Final = (
    StructType()
    .add("start_ms", LongType())
    .add("end_ms", LongType())
    .add("group", StringType())
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("committed", LongType())
    .add("source_offset", LongType())
    .add("end_offset", LongType())
    .add("lag", LongType())
)
_MS: Final = ("start_ms", "end_ms")


def events(records: DataFrame) -> DataFrame:
    """Records of `__consumer_offsets`, as format("rota") reads them, decoded: EVENT, and when and where it was."""
    read = arrow_udf(decoded, EVENT)  # type: ignore[call-overload] # its kind is told by decoded's types
    told = records.select(
        read("key", "value").alias("event"),  # not mapInArrow, which asks for pandas without a need
        F.col("timestamp").alias("at"),
        F.col("partition").alias("source_partition"),
        F.col("offset").alias("source_offset"),
    )
    return told.select("event.*", "at", "source_partition", "source_offset")


def windowed(events: DataFrame, window: str) -> DataFrame:
    """Events with the window that each lies in; `window` is an interval of Spark's: 1 minute."""
    of = F.window("at", window)
    return events.withColumn("window_start", of["start"]).withColumn("window_end", of["end"])


def commits(events: DataFrame) -> DataFrame:
    """How often each group committed each partition, and what; `last_offset` is null where it was taken back since."""
    is_commit = F.col("kind") == COMMIT
    return (
        events.where(F.col("kind").isin(COMMIT, FORGOTTEN))
        .groupBy(*WINDOW, *PARTITION)
        .agg(
            F.count_if(is_commit).alias("commits"),
            F.count_if(~is_commit).alias("forgotten"),
            F.min_by("offset", F.when(is_commit, F.col("source_offset"))).alias("first_offset"),
            F.max_by("offset", "source_offset").alias("last_offset"),
            F.max("source_offset").alias("source_offset"),
        )
    )


def rebalances(events: DataFrame) -> DataFrame:
    """The generations that each group went through, and how many members it had. The last one is the current one."""
    size = F.size("members")
    counted = F.when(F.col("generation") > 0, F.col("generation"))  # 0: it has not had one yet
    return (
        events.where(F.col("kind") == GROUP)
        .groupBy(*WINDOW, "group")
        .agg(
            F.array_sort(F.collect_set(counted)).alias("generations"),
            *(F.max_by(one, "source_offset").alias(one) for one in ("generation", "protocol")),
            F.max_by(size, "source_offset").alias("members"),
            F.max(size).alias("members_max"),
            F.max("source_offset").alias("source_offset"),
        )
    )


def members(events: DataFrame) -> DataFrame:
    """Who was in each generation of each group, and how much they had to read."""
    last = events.where(F.col("kind") == GROUP).groupBy(*WINDOW, "group", "generation")
    found = last.agg(F.max_by("members", "source_offset").alias("members"))
    return found.withColumn("member", F.explode("members")).select(*WINDOW, "group", "generation", "member.*")


def skipped(events: DataFrame) -> DataFrame:
    """What was no record of a kind that is known here, counted by the reason."""
    counted = F.count("*").alias("records")
    return events.where(F.col("kind") == SKIPPED).groupBy(*WINDOW, "reason").agg(counted)


def standings(rows: DataFrame, offset: str) -> list[Standing]:
    """Rows of the tables commits (offset: last_offset) and lag (committed), on the driver."""
    found = rows.select(*_millis(), *PARTITION, offset, "source_offset").collect()
    return [Standing((start, end), *rest) for start, end, *rest in found]


def lags(spark: SparkSession, rows: Iterable[Lag]) -> DataFrame:
    """The table lag."""
    flat = [(*one.standing.window, *one.standing[1:], one.end_offset, one.lag) for one in rows]
    made = spark.createDataFrame(flat, LAG)
    times = [F.timestamp_millis(F.col(ms)).alias(name) for ms, name in zip(_MS, WINDOW, strict=True)]
    return made.select(*times, *LAG.names[2:])


def _millis() -> list[Column]:
    return [F.unix_millis(F.col(one)) for one in WINDOW]
