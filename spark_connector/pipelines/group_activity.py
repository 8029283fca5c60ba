"""The activity of a cluster's consumer groups as tables: commits, lag, rebalances and members for each window.

    python -m rota.spark_connector.pipelines.group_activity --bootstrap-servers 127.0.0.1:9092 --output activity

A Structured Streaming job over `__consumer_offsets`, in which a broker stores its groups; docs/GROUP_ACTIVITY.md
describes the tables. `spark-submit` can run this file.

Laws
    A micro-batch writes its rows into folders of its own number and replaces them when it runs again: a restart from
    the checkpoint neither duplicates nor loses rows.
    Records that cannot be decoded are counted in the table `skipped` and do not stop the job.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.query import StreamingQuery

from rota.client import AdminConfig, ProducerConfig
from rota.client.config import ClientConfig
from rota.client.log import logger
from rota.client.other_clients import ALIASES
from rota.protocol.dataclass import dataclass
from rota.protocol.group_timeline import TOPIC as TIMELINE_TOPIC
from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines import tables
from rota.spark_connector.pipelines.arguments import checkpoint_path, common_parser, parse_common, source_options
from rota.spark_connector.pipelines.job_lock import locked
from rota.spark_connector.pipelines.lag import (
    GroupPosition,
    Lag,
    LogAtTime,
    positions_by_window,
    unread_offsets,
    with_lags,
    with_seconds,
)
from rota.spark_connector.pipelines.log_ends import end_offsets, record_times
from rota.spark_connector.pipelines.maintenance import maintain
from rota.spark_connector.pipelines.reading import TABLES, merged, schema
from rota.spark_connector.pipelines.table_files import BATCH, TableFiles, check_checkpoint, query_id
from rota.spark_connector.source import register

TOPIC: Final = "__consumer_offsets"
_log = logger("rota.spark")


@dataclass(frozen=True, slots=True)
class Job:
    """The job's parameters. `checkpoint` "": in the output folder. `trigger`: once, available-now, or an interval.

    `timeline`: events of `__rota_group_timeline`, too. `groups` and `topics` are regular expressions of whole names,
    "": all. A group above `lag_max`, `lag_seconds_max` or `rebalances_max` in a window has an alert, 0: none.
    `compact_after`: the number of folders of a day that are joined into one. `keep_days` 0: for ever.
    """

    bootstrap_servers: str
    output: str
    checkpoint: str = ""
    window: str = "1 minute"
    trigger: str = "available-now"
    starting: str = "earliest"
    timeline: bool = False
    groups: str = ""
    topics: str = ""
    lag_max: int = 0
    lag_seconds_max: int = 0
    rebalances_max: int = 0
    alert_topic: str = ""
    compact_after: int = 100
    keep_days: int = 0
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def checkpoint_path(self) -> str:
        """The folder of the checkpoint."""
        return checkpoint_path(self.output, self.checkpoint)

    @property
    def limits(self) -> tables.Limits:
        """The limits of alerts."""
        return tables.Limits(self.lag_max, self.lag_seconds_max, self.rebalances_max)

    @property
    def source(self) -> dict[str, str]:
        """The options of the source. Records that retention deletes before the job reads them do not stop it."""
        topics = f"{TOPIC},{TIMELINE_TOPIC}" if self.timeline else TOPIC
        own = source_options(self.bootstrap_servers, topics, self.starting)
        return {**own, "failOnDataLoss": "false", **self.options}

    def client(self, config: type[ClientConfig]) -> dict[str, str]:
        """The settings that a client of this kind has."""
        known = {each.name.replace("_", ".") for each in fields(config)} | set(ALIASES)
        given = {name.removeprefix("kafka."): value for name, value in self.source.items() if name.startswith("kafka.")}
        return {name: value for name, value in given.items() if name in known}

    def table(self, name: str) -> TableFiles:
        """The files of a table."""
        return TableFiles(f"{self.output}/{name}", tables.DAY)

    @property
    def when(self) -> dict[str, Any]:
        """For writeStream.trigger."""
        match self.trigger:
            case "once":
                return {"once": True}
            case "available-now":
                return {"availableNow": True}
        return {"processingTime": self.trigger}


def start(spark: SparkSession, job: Job) -> StreamingQuery:
    """Start the query. Raises OptionError when the output folder belongs to another checkpoint."""
    register(spark)
    check_checkpoint(job.output, "lag", job.checkpoint_path)
    for name in TABLES:
        job.table(name).create()
        job.table(name).recover()
    read = spark.readStream.format("rota").options(**job.source).load()
    writer = (
        tables.events(read).writeStream.queryName("group_activity").option("checkpointLocation", job.checkpoint_path)
    )
    return writer.trigger(**job.when).foreachBatch(batch_writer(job)).start()


def batch_writer(job: Job) -> Callable[[DataFrame, int], None]:
    """For foreachBatch. The first micro-batch of a run may have been written before a crash: it is removed first."""
    known: list[GroupPosition] | None = None

    def write(batch: DataFrame, number: int) -> None:
        nonlocal known
        spark = batch.sparkSession
        if known is None:
            for name in TABLES:
                job.table(name).restart(query_id(job.checkpoint_path), number)
            known = previous_positions(spark, job, number)
        known = write_batch(batch, number, known, job) or known
        for name in TABLES:
            merge = partial(merged, name)
            maintain(spark, job.table(name), number, job.compact_after, job.keep_days, schema(name), merge)

    return write


def write_batch(batch: DataFrame, number: int, known: list[GroupPosition], job: Job) -> list[GroupPosition]:
    """Write the rows of one micro-batch; returns its positions. `known` are those of the micro-batch before."""
    spark = batch.sparkSession
    events = tables.of_groups(tables.with_windows(batch, job.window), job.groups, job.topics).persist()
    try:
        kinds = {row["kind"] for row in events.select("kind").distinct().collect()}
        for kind_of, make in tables.OF_EVENTS:
            if kinds & kind_of:
                _write(make(events), job, make.__name__, number)
        rows = positions_by_window(tables.collect_positions(tables.commits(events), "last_offset"), known)
        ends = end_offsets(job.client(AdminConfig), {position.log_at_time for position in rows})
        lags = tables.lags(spark, _measured(rows, ends, job))
        if rows:
            _write(lags, job, "lag", number)
        if any(job.limits):
            alerts = tables.alerts(lags, tables.rebalances(events), job.limits)
            if found := alerts.collect():
                write_alerts(spark.createDataFrame(found, alerts.schema), job, number)
    finally:
        events.unpersist()
    _log.info("Wrote the activity of groups", batch=number, output=job.output)
    return rows


def _measured(rows: list[GroupPosition], ends: Mapping[LogAtTime, int], job: Job) -> list[Lag]:
    lags = list(with_lags(rows, ends))
    times = record_times(job.client(ClientConfig), unread_offsets(lags))
    return list(with_seconds(lags, times, int(time.time() * 1000)))


def write_alerts(alerts: DataFrame, job: Job, number: int) -> None:
    """Write alerts into their table and, as JSON with the group as the key, to the topic of --alert-topic."""
    _write(alerts, job, "alerts", number)
    if not job.alert_topic:
        return
    settings = {f"kafka.{name}": value for name, value in job.client(ProducerConfig).items()}
    records = alerts.select(F.col("group").alias("key"), F.to_json(F.struct("*")).alias("value"))
    records.write.format("rota").mode("append").options(**settings, topic=job.alert_topic).save()


def previous_positions(spark: SparkSession, job: Job, number: int) -> list[GroupPosition]:
    """The positions of the newest micro-batch before `number` that has any."""
    folders = job.table("lag").newest_folders(number)
    return tables.collect_positions(spark.read.parquet(*folders), "committed") if folders else []


def _write(rows: DataFrame, job: Job, table: str, number: int) -> None:
    numbered = tables.with_day(rows).withColumn(BATCH, F.lit(number)).coalesce(1)
    numbered.write.mode("append").partitionBy(tables.DAY, BATCH).parquet(f"{job.output}/{table}")


def parse_arguments(arguments: Sequence[str]) -> Job:
    """Run from the command line."""
    parser = common_parser("group_activity", (__doc__ or "").partition("\n")[0], "the folder or URL for the tables")
    parser.add_argument("--window", default="1 minute", help="the length of a window (%(default)s)")
    parser.add_argument(
        "--trigger", default="available-now", help="once, available-now, or an interval: '30 seconds' (%(default)s)"
    )
    parser.add_argument("--timeline", action="store_true", help=f"also the events in {TIMELINE_TOPIC} of Rota")
    parser.add_argument("--groups", default="", metavar="REGEX", help="the groups (all)")
    parser.add_argument("--topics", default="", metavar="REGEX", help="the topics (all)")
    parser.add_argument("--lag-max", type=int, default=0, metavar="N", help="a higher lag of a group is an alert")
    parser.add_argument(
        "--lag-seconds-max", type=int, default=0, metavar="S", help="an older unread record of a group is an alert"
    )
    parser.add_argument(
        "--rebalances-max", type=int, default=0, metavar="N", help="more rebalances of a group in a window are an alert"
    )
    parser.add_argument("--alert-topic", default="", metavar="TOPIC", help="alerts are written to it, too")
    parser.add_argument("--compact-after", type=int, default=100, metavar="N", help="folders of a day (%(default)s)")
    parser.add_argument("--keep-days", type=int, default=0, metavar="N", help="older days are removed (never)")
    return Job(**parse_common(parser, list(arguments)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until all records are read or, with an interval, until it is interrupted."""
    job = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with locked(job.checkpoint_path):
            _run(job)
    except OptionError as error:
        print(f"group_activity: {error}", file=sys.stderr)
        return 2
    return 0


def _run(job: Job) -> None:
    spark = SparkSession.builder.appName("group_activity").getOrCreate()
    try:
        query = start(spark, job)
        try:
            query.awaitTermination()
        except KeyboardInterrupt:
            query.stop()
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
