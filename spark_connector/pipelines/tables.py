"""The rows of each table from the events of one micro-batch. Works on DataFrames, without reading or writing files.

Laws
    Rows do not depend on the order in which Spark reads the events: the records of a group are in one partition, and
    their offsets define the order.
    A window has rows in each micro-batch with records of it; reading.py merges them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructType

from rota.spark_connector.pipelines.decode import (
    COMMIT,
    CONSUMER_MEMBER,
    EPOCH,
    EVENT,
    FORGOTTEN,
    GROUP,
    SKIPPED,
    TIMELINE,
    TIMELINE_EVENT,
    decode_event,
    decode_events,
)
from rota.spark_connector.pipelines.lag import GroupPosition, Lag

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
    .add("lag_seconds", DoubleType())
)
DAY: Final = "day"
LAST: Final = "9000-01-01T00:00:00Z"  # with a window after it, it is in Python's calendar
CLASSIC: Final = "classic"  # Kafka's types of a group
CONSUMER: Final = "consumer"
TIMELINE_ROW: Final = ("group", "sequence", "time", "type")  # a group that is deleted counts from 0 again
_MS: Final = ("start_ms", "end_ms")


def events(records: DataFrame) -> DataFrame:
    """Decode records of format("rota"): EVENT, with timestamp, partition and offset. A later time than LAST, as of a
    broker with a wrong clock, counts as LAST."""
    read = _decoder()
    decoded = records.select(
        read("topic", "key", "value").alias("event"),  # not mapInArrow, which requires pandas
        F.least("timestamp", F.lit(LAST).cast("timestamp")).alias("at"),
        F.col("partition").alias("source_partition"),
        F.col("offset").alias("source_offset"),
    )
    return decoded.select("event.*", "at", "source_partition", "source_offset")


def _decoder() -> Any:
    """decode_events as a function of columns; in PySpark 4.0, which has no arrow_udf, a record at a time."""
    try:
        from pyspark.sql.pandas.functions import arrow_udf
    except ImportError:
        return F.udf(_decode_row, EVENT)
    return arrow_udf(decode_events, EVENT)  # type: ignore[call-overload] # its annotations define its kind


def _decode_row(topic: str, key: bytearray | None, value: bytearray | None) -> dict[str, Any]:
    return decode_event(topic, None if key is None else bytes(key), None if value is None else bytes(value))


def with_windows(events: DataFrame, window: str) -> DataFrame:
    """Events with their window; `window` is a Spark interval, as in 1 minute."""
    of = F.window("at", window)
    return events.withColumn("window_start", of["start"]).withColumn("window_end", of["end"])


def of_groups(events: DataFrame, groups: str, topics: str) -> DataFrame:
    """The events of the groups and topics whose whole names match these regular expressions; "": all of them."""
    kept = F.lit(True)
    if groups:
        kept = kept & F.col("group").rlike(whole(groups))
    if topics:
        kept = kept & (F.col("topic").isNull() | F.col("topic").rlike(whole(topics)))
    return events.where(kept | (F.col("kind") == SKIPPED))


def whole(pattern: str) -> str:
    """A regular expression of whole names."""
    return f"^(?:{pattern})$"


def with_day(rows: DataFrame) -> DataFrame:
    """Rows with the day in UTC of their window, whatever the session's time zone."""
    day = F.date_from_unix_date(F.floor(F.unix_seconds("window_start") / 86_400).cast("int"))
    return rows.withColumn(DAY, day)


def commits(events: DataFrame) -> DataFrame:
    """The commits of each group and partition; `last_offset` is null when the offset was deleted afterwards."""
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
    """The generations of each group and its number of members; the last generation is the current one."""
    size = F.when(F.col("kind") == GROUP, F.size("members"))  # no record of KIP-848 has it
    counted = F.when(F.col("generation") > 0, F.col("generation"))  # 0: no generation yet
    return (
        events.where(F.col("kind").isin(GROUP, EPOCH))
        .groupBy(*WINDOW, "group")
        .agg(
            F.array_sort(F.collect_set(counted)).alias("generations"),
            *(F.max_by(name, "source_offset").alias(name) for name in ("generation", "protocol")),
            F.max_by(size, "source_offset").alias("members"),
            F.max(size).alias("members_max"),
            F.max("source_offset").alias("source_offset"),
        )
    )


def members(events: DataFrame) -> DataFrame:
    """The members of each generation of each group, with their number of partitions. The type of a group of KIP-848 is
    `consumer`: a member has a row with generation 0 for its own fields, and one for each of its epochs."""
    last = events.where(F.col("kind") == GROUP).groupBy(*WINDOW, "group", "generation")
    found = last.agg(F.max_by("members", "source_offset").alias("members"))
    rows = found.withColumn("member", F.explode("members")).withColumn("type", F.lit(CLASSIC))
    new = events.where(F.col("kind") == CONSUMER_MEMBER).withColumn("member", F.col("members")[0])
    by_id = new.groupBy(*WINDOW, "group", "generation", F.col("member.member_id").alias("id"))
    new_rows = by_id.agg(F.max_by("member", "source_offset").alias("member")).withColumn("type", F.lit(CONSUMER))
    columns = (*WINDOW, "group", "generation", "member.*", "type")
    return rows.select(*columns).unionByName(new_rows.select(*columns))


def timeline(events: DataFrame) -> DataFrame:
    """The events of the timelines of groups, each once: a broker may write one again."""
    of = events.where(F.col("kind") == TIMELINE)
    names = [name for name in TIMELINE_EVENT.names if name != "time_ms"]
    time = F.timestamp_millis(F.col("timeline.time_ms")).alias("time")
    found = of.select(*WINDOW, "group", "generation", time, *(f"timeline.{name}" for name in names))
    return found.dropDuplicates([*WINDOW, *TIMELINE_ROW])


def skipped(events: DataFrame) -> DataFrame:
    """The number of skipped records by reason."""
    counted = F.count("*").alias("records")
    return events.where(F.col("kind") == SKIPPED).groupBy(*WINDOW, "reason").agg(counted)


class Limits(NamedTuple):
    """The values of a group in a window above which it has an alert; 0: none. `lag_seconds` is of any partition."""

    lag: int = 0
    lag_seconds: int = 0
    rebalances: int = 0


def alerts(lags: DataFrame, rebalances: DataFrame, limits: Limits) -> DataFrame:
    """A row for each group, window and kind of limit whose value is above it: the lag in records or seconds, or the
    number of new generations in this micro-batch."""
    columns = (*WINDOW, "group", "kind", "value", "limit")
    behind = lags.groupBy(*WINDOW, "group")
    values = {
        "lag": behind.agg(F.sum("lag").alias("value")),
        # half a second above the limit is above it
        "lag_seconds": behind.agg(F.ceil(F.max("lag_seconds")).cast("long").alias("value")),
        "rebalances": rebalances.select(*WINDOW, "group", F.size("generations").cast("long").alias("value")),
    }
    rows = [
        values[kind].withColumn("kind", F.lit(kind)).withColumn("limit", F.lit(limit).cast("long")).select(*columns)
        for kind, limit in limits._asdict().items()
    ]
    return reduce(DataFrame.unionByName, rows).where((F.col("limit") > 0) & (F.col("value") > F.col("limit")))


OF_EVENTS: Final = (  # the tables, and the kinds of events without which they have no rows
    (frozenset((COMMIT, FORGOTTEN)), commits),
    (frozenset((GROUP, EPOCH)), rebalances),
    (frozenset((GROUP, CONSUMER_MEMBER)), members),
    (frozenset((TIMELINE,)), timeline),
    (frozenset((SKIPPED,)), skipped),
)


def collect_positions(rows: DataFrame, offset: str) -> list[GroupPosition]:
    """Collect the positions in the table commits (column last_offset) or lag (column committed)."""
    found = rows.select(*_millis(), *PARTITION, offset, "source_offset").collect()
    return [GroupPosition((start, end), *rest) for start, end, *rest in found]


def collect_lags(rows: DataFrame) -> list[Lag]:
    """Collect the rows of the table lag."""
    found = rows.select(*_millis(), *LAG.names[2:]).collect()
    of_position = len(GroupPosition._fields) - 1  # without the window
    return [Lag(GroupPosition((start, end), *rest[:of_position]), *rest[of_position:]) for start, end, *rest in found]


def lags(spark: SparkSession, rows: Iterable[Lag]) -> DataFrame:
    """The table lag."""
    flat = [(*row.position.window, *row.position[1:], row.end_offset, row.lag, row.lag_seconds) for row in rows]
    made = spark.createDataFrame(flat, LAG)
    times = [F.timestamp_millis(F.col(ms)).alias(name) for ms, name in zip(_MS, WINDOW, strict=True)]
    return made.select(*times, *LAG.names[2:])


def _millis() -> list[Column]:
    return [F.unix_millis(F.col(name)) for name in WINDOW]
