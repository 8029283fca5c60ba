"""Compaction and expiry of a table that is partitioned by day and micro-batch.

Laws
    Compaction changes no row of the table: a file that cannot be read is an error, whatever the session ignores. The
    current micro-batch, which may run again, is not compacted.
    A day is removed when it is more than `keep_days` before the newest day of the table that is not in the future.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from rota.client.log import logger
from rota.spark_connector.pipelines.table_files import BATCH, TableFiles, folder_date

FILE_BYTES: Final = 256 << 20  # of a compacted file, about
COMPLETE: Final = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}  # the files are deleted afterwards
Merge = Callable[[DataFrame], DataFrame]
_log = logger("rota.spark")


def maintain(
    spark: SparkSession,
    table: TableFiles,
    number: int,
    compact_after: int,
    keep_days: int,
    schema: str = "",
    merge: Merge = lambda rows: rows,
) -> None:
    """Remove old days and compact the micro-batches before `number`, which is the current one.

    `merge` combines the rows of several micro-batches; `schema` has their columns, "": those of the files.
    """
    if not is_due(number, compact_after):
        return
    filled = [day for day in table.days() if table.batches(day)]  # not one whose micro-batch was removed for a new run
    for day in expired(filled, keep_days, datetime.now(UTC).date()):
        table.remove_day(day)
        _log.info("Removed an old day", table=table.location, day=day)
    for day in table.days():
        if len(table.batches(day)) <= compact_after:
            continue
        small = [each for each in table.batches(day) if each < number and table.size_bytes(day, each) < FILE_BYTES]
        if len(small) > compact_after:
            compact(spark, table, day, small, schema, merge)


def is_due(number: int, compact_after: int) -> bool:
    """Whether a table is maintained after this micro-batch: listing all of its folders or days takes time."""
    return not number % max(1, compact_after // 2)


def delete_old_days(spark: SparkSession, table: str, day: str, keep_days: int, location: str) -> None:
    """Delete the rows of old days from a table that SQL can change; `location` names it in the log."""
    days = [row[0] for row in spark.sql(f"SELECT DISTINCT {day} FROM {table}").collect()]
    if old := expired_dates(days, keep_days, datetime.now(UTC).date()):
        listed = ", ".join(f"DATE'{each}'" for each in old)
        spark.sql(f"DELETE FROM {table} WHERE {day} IN ({listed})")
        _log.info("Removed old days", table=location, days=len(old))


def compact(
    spark: SparkSession,
    table: TableFiles,
    day: str,
    numbers: list[int],
    schema: str = "",
    merge: Merge = lambda rows: rows,
) -> None:
    """Join micro-batches of a day into the folder of the last one."""
    folders = [f"{table.location}/{day}/{BATCH}={number}" for number in numbers]
    reader = spark.read.options(mergeSchema="true", basePath=table.location, **COMPLETE)
    rows = (reader.schema(schema) if schema else reader).parquet(*folders)
    files = 1 + sum(table.size_bytes(day, number) for number in numbers) // FILE_BYTES
    merge(rows).drop(BATCH, table.day).coalesce(files).write.mode("overwrite").parquet(
        table.copy_location(day, numbers[-1])
    )
    table.replace(day, numbers)
    _log.info("Compacted a day", table=table.location, day=day, through=numbers[-1])


def expired(days: list[str], keep_days: int, today: date) -> list[str]:
    """The folders of the days that are to be removed; `keep_days` below 1: none. Folders with another name are kept."""
    dates = {name: day for name in days if (day := folder_date(name)) is not None}
    old = set(expired_dates(dates.values(), keep_days, today))
    return [name for name, day in dates.items() if day in old]


def expired_dates(days: Iterable[date | None], keep_days: int, today: date) -> list[date]:
    """The same for the days themselves, in order; a day that is None is kept."""
    dates = sorted(day for day in days if day is not None)
    newest = max((day for day in dates if day <= today), default=None)
    if keep_days < 1 or newest is None:
        return []
    return [day for day in dates if (newest - day).days > keep_days]
