"""The job group_activity into Delta or Iceberg, in a process of its own: their packages have no release for each Spark.

    python activity_program.py delta|iceberg BOOTSTRAP FOLDER TABLE [SETTING=VALUE ...]

With a TABLE the process and its JVM are killed (SIGKILL) when a micro-batch is committed to that table, before it is to
the next one. With "" it completes what was killed, goes on, and prints JSON: what the tables had after each run.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import rota.spark_connector.pipelines.group_activity as pipeline
from rota.client import Producer, ProducerConfig
from rota.protocol import consumer_group_records as kip848
from rota.protocol.offsets_records import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value
from rota.spark_connector import register
from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.group_activity import Job, batch_writer, start
from rota.spark_connector.pipelines.reading import TABLES, read, schema
from rota.spark_connector.pipelines.report import chart_data, first_day
from rota.spark_connector.pipelines.table_formats import Table, prepare_tables

NAMESPACE = "lake.shop"
NEW = "lag_seconds"  # a column that an earlier version did not have
LATER = 19 * 86_400  # seconds after the first day
Record = tuple[bytes | None, bytes | None, int]  # key, value, second


def send(servers: str, topic: str, records: Iterable[Record]) -> None:
    async def write() -> None:
        async with Producer(ProducerConfig(bootstrap_servers=servers)) as producer:
            for key, value, second in records:
                await producer.send(topic, value, key, partition=0, timestamp_ms=second * 1000)

    asyncio.run(write())


def committed(group: str, offset: int, second: int) -> Record:
    key = encode_key(OffsetCommitKey(group=group, topic="orders", partition=0))
    return key, encode_value(OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0), 4), second


def generation(epoch: int, second: int) -> list[Record]:
    """A generation of the group g with one member."""
    fields = {"client_id": "c", "client_host": "/h", "subscribed_topic_names": ("orders",)}
    of_member = kip848.MemberKey(group="g", member_id="m"), kip848.MemberValue(**fields)
    assigned = kip848.CurrentAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=0,
        assigned_partitions=(kip848.CurrentPartitions(topic_id=b"t" * 16, partitions=(0,)),),
    )
    pairs = [
        of_member,
        (kip848.EpochKey(group="g"), kip848.EpochValue(epoch=epoch)),
        (kip848.CurrentAssignmentKey(group="g", member_id="m"), assigned),
    ]
    return [(kip848.encode_key(key), kip848.encode_value(value), second) for key, value in pairs]


class Killed:
    """A table after whose commit the process dies, with its JVM."""

    def __init__(self, table: Table, process: int) -> None:
        self.table, self.process = table, process

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def append(self, rows: DataFrame, number: int) -> None:
        self.table.append(rows, number)
        for process in (self.process, os.getpid()):
            os.kill(process, signal.SIGKILL)


def killed_after(spark: SparkSession, job: Job, name: str) -> None:
    """A run that dies when the table has the micro-batch."""
    opened = pipeline.open_table

    def open_table(place: Any, table: str, *more: Any) -> Any:
        found = opened(place, table, *more)
        return Killed(found, spark.sparkContext._gateway.proc.pid) if table == name else found

    pipeline.open_table = open_table
    start(spark, job).awaitTermination()


def as_an_earlier_version() -> None:
    """Create the tables without the column NEW."""
    pipeline.schema = lambda name: schema(name).replace(f", {NEW} double", "")


class Activity:
    """A job and what is in its tables."""

    def __init__(self, spark: SparkSession, job: Job) -> None:
        self.spark, self.job = spark, job
        self.folder = job.output
        if job.namespace:
            self.folder = f"{spark.conf.get('spark.sql.catalog.lake.warehouse')}/shop"

    def run(self, job: Job | None = None) -> None:
        start(self.spark, job or self.job).awaitTermination()

    def stored(self, name: str) -> DataFrame:
        """The rows as they lie there, of all micro-batches."""
        if self.job.namespace:
            self.spark.catalog.refreshTable(f"{NAMESPACE}.{name}")  # written by a session of its own
            return self.spark.table(f"{NAMESPACE}.{name}")
        return self.spark.read.format("delta").load(f"{self.job.output}/{name}")

    def counts(self) -> dict[str, int]:
        return {name: self.stored(name).count() for name in TABLES}

    def rows(self, job: Job) -> dict[str, list[str]]:
        """What `read` returns."""
        found = {name: read(self.spark, job.output, name, job.namespace).collect() for name in TABLES}
        return {name: sorted(repr(sorted(row.asDict().items())) for row in rows) for name, rows in found.items()}

    def days(self) -> list[str]:
        return sorted(str(row[0]) for row in self.stored("lag").select("day").distinct().collect())

    def files(self) -> int:
        """The number of files with rows of the table lag."""
        if self.job.namespace:
            self.spark.catalog.refreshTable(f"{NAMESPACE}.lag")
            return self.spark.table(f"{NAMESPACE}.lag.files").count()
        detail = self.spark.sql(f"DESCRIBE DETAIL delta.`{self.job.output}/lag`").collect()[0]
        return int(detail["numFiles"])

    def killed_before_the_commit(self, number: int) -> dict[str, int]:
        """As if a run had ended between the tables and the checkpoint; the rows after the next run."""
        for file in (f"{number}", f".{number}.crc"):
            Path(self.job.checkpoint_path, "commits", file).unlink()
        self.run()
        return self.counts()

    def twice_in_one_run(self, job: Job) -> None:
        """A micro-batch that the writer gets again."""

        def write(batch: DataFrame, number: int) -> None:
            for _ in range(2):
                batch_writer(job)(batch, number)

        prepare_tables(self.spark, job.place, job.tables())
        rows = self.spark.readStream.format("rota").options(**job.source).load()
        writer = pipeline.tables.events(rows).writeStream.option("checkpointLocation", job.checkpoint_path)
        writer.trigger(availableNow=True).foreachBatch(write).start().awaitTermination()


def refused(action: Callable[[], object]) -> str:
    """The error."""
    try:
        action()
    except (PySparkException, OptionError) as error:
        return str(error)
    return ""


def main(kind: str, servers: str, folder: str, kill: str, *settings: str) -> None:
    builder = SparkSession.builder.appName("activity")
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    register(spark)
    offsets = f"offsets-{kind}"
    namespace = NAMESPACE if kind == "iceberg" else ""
    job = Job(servers, f"{folder}/{kind}", window="2 seconds", options={"subscribe": offsets}, lag_max=9)
    job = replace(job, compact_after=4, keep_days=5, table_format=kind, namespace=namespace)
    if kill == "commits":
        send(servers, "orders", ((None, b"x", second) for second in range(1, 11)))
        first = [committed("g", 1, 2), *generation(3, 3), (b"\0\x0b", b"", 3), committed("late", 0, 12)]
        send(servers, offsets, first)
        as_an_earlier_version()
    if kill:
        killed_after(spark, job, kill)
    else:
        print(json.dumps(completed(Activity(spark, job), servers, offsets, folder)))
    spark.stop()


def completed(activity: Activity, servers: str, offsets: str, folder: str) -> dict[str, Any]:
    job, spark = activity.job, activity.spark
    found: dict[str, Any] = {"version": spark.version, "killed": activity.counts()}
    found["columns"] = NEW in activity.stored("lag").columns
    # what is measured now is not what the table has
    send(servers, "orders", ((None, b"x", 13) for _ in range(5)))
    activity.run()
    found["first"] = activity.counts()
    found["lags"] = [row["lag"] for row in activity.stored("lag").where("`group` = 'late'").collect()]
    found["alerts"] = [row["value"] for row in activity.stored("alerts").where("`group` = 'late'").collect()]
    found["replayed"] = activity.killed_before_the_commit(0) == found["first"]
    shutil.copytree(job.checkpoint_path, f"{folder}/older")
    send(servers, offsets, [committed("g", 4, 16), *generation(4, 17)])
    activity.run()
    found["second"] = activity.counts()
    found["replayed later"] = activity.killed_before_the_commit(1) == found["second"]
    send(servers, offsets, [committed("g", 10, 18)])
    activity.run()
    found["compacted"] = activity.files()
    reference = Job(servers, f"{folder}/parquet", window="2 seconds", options=job.options, lag_max=9)
    activity.run(reference)
    found["as Parquet"] = {name: rows == activity.rows(job)[name] for name, rows in activity.rows(reference).items()}
    found["reported"] = chart_data(activity.folder) == chart_data(reference.output)
    found["elsewhere"] = refused(lambda: start(spark, replace(job, table_format="parquet", namespace="")))
    send(servers, offsets, [committed("g", 12, LATER)])
    activity.twice_in_one_run(replace(job, compact_after=2))
    found["expired"] = [activity.days(), activity.stored("lag").count()]
    found["first day"] = str(first_day(activity.folder, 1, date(1970, 2, 1)))
    found["of that day"] = len(chart_data(activity.folder, days=1)[1]["partitions"])
    found["another"] = refused(lambda: start(spark, replace(job, checkpoint=f"{folder}/another")))
    older = replace(job, checkpoint=f"{folder}/older")
    found["older"] = "an older copy" in refused(lambda: start(spark, older).awaitTermination())
    found["untouched"] = [activity.days(), activity.stored("lag").count()] == found["expired"]
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
