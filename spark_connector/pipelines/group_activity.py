"""The activity of a cluster's consumer groups as tables: commits, lag, rebalances and members for each window.

    python -m rota.spark_connector.pipelines.group_activity --bootstrap-servers 127.0.0.1:9092 --output activity

A Structured Streaming job over `__consumer_offsets`, in which a broker stores its groups; docs/GROUP_ACTIVITY.md
describes the tables. `spark-submit` can run this file.

Laws
    A micro-batch that runs again replaces what it had written (Parquet), or writes into each table what is not there
    (the others): a restart from the checkpoint neither duplicates nor loses rows.
    What the table `lag` has of a micro-batch is what the next one continues from, and what the alerts are about: no
    day of it expires by the rows of a micro-batch that may run again.
    Records that cannot be decoded are counted in the table `skipped` and do not stop the job.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from functools import partial
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.query import StreamingQuery

from rota.client import AdminConfig, ProducerConfig
from rota.client.config import ClientConfig
from rota.client.log import logger
from rota.client.other_clients import ALIASES
from rota.protocol.dataclass import dataclass
from rota.protocol.group_timeline import TOPIC as TIMELINE_TOPIC
from rota.spark_connector.options import stream_options
from rota.spark_connector.pipelines import tables
from rota.spark_connector.pipelines.arguments import checkpoint_path, common_parser, parse_common, source_options
from rota.spark_connector.pipelines.checkpoint_tables import Place
from rota.spark_connector.pipelines.job_errors import checked, exit_code
from rota.spark_connector.pipelines.job_lock import locked
from rota.spark_connector.pipelines.lag import (
    GroupPosition,
    Lag,
    positions_by_window,
    unread_offsets,
    with_lags,
    with_seconds,
)
from rota.spark_connector.pipelines.log_ends import end_offsets, record_times
from rota.spark_connector.pipelines.micro_batches import numbered
from rota.spark_connector.pipelines.reading import TABLES, merged, schema
from rota.spark_connector.pipelines.table_files import BATCH
from rota.spark_connector.pipelines.table_formats import (
    Table,
    add_table_arguments,
    open_table,
    prepare_tables,
    restart_tables,
)
from rota.spark_connector.pipelines.tables import whole
from rota.spark_connector.source import register

TOPIC: Final = "__consumer_offsets"
_log = logger("rota.spark")


@dataclass(frozen=True, slots=True)
class Job:
    """The job's parameters. `checkpoint` "": in the output folder. `trigger`: once, available-now, or an interval.

    `timeline`: events of `__rota_group_timeline`, too. `groups` and `topics` are regular expressions of whole names,
    "": all. A group above `lag_max`, `lag_seconds_max` or `rebalances_max` in a window has an alert, 0: none.
    `compact_after`: the number of folders of a day that are joined into one. `keep_days` 0: for ever. `table_format`:
    parquet, delta or iceberg, the last one with a `namespace`: a catalog and a namespace in it.
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
    table_format: str = "parquet"
    namespace: str = ""
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

    @property
    def place(self) -> Place:
        """Where the tables are."""
        return Place(self.table_format, self.output, self.namespace, self.checkpoint_path)

    def tables(self) -> dict[str, Table]:
        """TABLES. Raises OptionError."""
        return {name: open_table(self.place, name, tables.DAY, schema(name), partial(merged, name)) for name in TABLES}

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
    """Start the query. Raises OptionError when the tables belong to another checkpoint, or the checkpoint to others."""
    register(spark)
    stream_options(job.source)
    check_expressions(spark, job)
    prepare_tables(spark, job.place, job.tables())
    read = spark.readStream.format("rota").options(**job.source).load()
    writer = (
        tables.events(read).writeStream.queryName("group_activity").option("checkpointLocation", job.checkpoint_path)
    )
    with checked("--trigger", job.trigger, "once, available-now, or an interval, as in 30 seconds"):
        writer = writer.trigger(**job.when)
    return writer.foreachBatch(batch_writer(job)).start()


def check_expressions(spark: SparkSession, job: Job) -> None:
    """Raise OptionError for what Spark would refuse in each micro-batch."""
    row = spark.sql("VALUES ('') AS one(name)")  # local rows: Java's error ends no task
    with checked("--window", job.window, "an interval above 0 without months, as in 10 minutes"):
        row.select(F.window(F.current_timestamp(), job.window))
    for option, pattern in (("--groups", job.groups), ("--topics", job.topics)):
        if pattern:
            with checked(option, pattern, "a regular expression of Java, as in orders-.*"):
                row.where(F.col("name").rlike(whole(pattern))).collect()


def batch_writer(job: Job) -> Callable[[DataFrame, int], None]:
    """For foreachBatch. Before a crash the first micro-batch of a run may have been written into some of the tables."""
    opened = job.tables()
    known: list[GroupPosition] | None = None

    def write(batch: DataFrame, number: int) -> None:
        nonlocal known
        spark = batch.sparkSession
        written: list[Lag] = []
        if known is None:
            restart_tables(spark, opened.values(), number)
            for name, table in opened.items():
                table.create(spark, schema(name))
            known = previous_positions(spark, opened["lag"], number)
            written = written_lags(spark, opened["lag"], number)
        for table in opened.values():  # not after the rows: if it was killed then, the next run lacks positions
            table.maintain(spark, number, job.compact_after, job.keep_days)
        known = write_batch(batch, Batch(number, known, written), job, opened) or known

    return write


class Batch(NamedTuple):
    """A micro-batch: its number, the positions of the one before, and the lags that an earlier run has written of it,
    which are not measured again."""

    number: int
    known: list[GroupPosition]
    written: list[Lag]


def write_batch(batch: DataFrame, at: Batch, job: Job, opened: Mapping[str, Table]) -> list[GroupPosition]:
    """Write the rows of one micro-batch; returns its positions."""
    spark = batch.sparkSession
    events = tables.of_groups(tables.with_windows(batch, job.window), job.groups, job.topics).persist()
    try:
        kinds = {row["kind"] for row in events.select("kind").distinct().collect()}
        for kind_of, make in tables.OF_EVENTS:
            if kinds & kind_of:
                _append(opened[make.__name__], make(events), at.number)
        measured = at.written or _measured(events, at.known, job)
        lags = tables.lags(spark, measured)
        if measured:
            _append(opened["lag"], lags, at.number)
        if any(job.limits):
            alerts = tables.alerts(lags, tables.rebalances(events), job.limits)
            if found := alerts.collect():
                alerts = spark.createDataFrame(found, alerts.schema)
                _append(opened["alerts"], alerts, at.number)
                send_alerts(alerts, job)
    finally:
        events.unpersist()
    _log.info("Wrote the activity of groups", batch=at.number, output=job.output)
    return [row.position for row in measured]


def _measured(events: DataFrame, known: list[GroupPosition], job: Job) -> list[Lag]:
    rows = positions_by_window(tables.collect_positions(tables.commits(events), "last_offset"), known)
    ends = end_offsets(job.client(AdminConfig), {position.log_at_time for position in rows})
    lags = list(with_lags(rows, ends))
    times = record_times(job.client(ClientConfig), unread_offsets(lags))
    return list(with_seconds(lags, times, int(time.time() * 1000)))


def send_alerts(alerts: DataFrame, job: Job) -> None:
    """Write alerts, as JSON with the group as the key, to the topic of --alert-topic."""
    if not job.alert_topic:
        return
    settings = {f"kafka.{name}": value for name, value in job.client(ProducerConfig).items()}
    records = alerts.select(F.col("group").alias("key"), F.to_json(F.struct("*")).alias("value"))
    records.write.format("rota").mode("append").options(**settings, topic=job.alert_topic).save()


def previous_positions(spark: SparkSession, lag: Table, number: int) -> list[GroupPosition]:
    """The positions of the newest micro-batch before `number` that has any."""
    rows = lag.newest(spark, number)
    return [] if rows is None else tables.collect_positions(rows, "committed")


def written_lags(spark: SparkSession, lag: Table, number: int) -> list[Lag]:
    """The lags that the table has of the micro-batch; none: empty."""
    rows = lag.newest(spark, number + 1)
    return [] if rows is None else tables.collect_lags(rows.where(F.col(BATCH) == number))


def _append(table: Table, rows: DataFrame, number: int) -> None:
    table.append(numbered(tables.with_day(rows), number).coalesce(1), number)


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
    add_table_arguments(parser)
    return Job(**parse_common(parser, list(arguments)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until all records are read or, with an interval, until it is interrupted."""
    return exit_code("group_activity", lambda: _run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> None:
    job = parse_arguments(arguments)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with locked(job.checkpoint_path):
        _run_locked(job)


def _run_locked(job: Job) -> None:
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
