"""The activity of a cluster's consumer groups as tables: commits, lag, rebalances and members for each window.

    python -m rota.spark_connector.pipelines.group_activity --bootstrap-servers 127.0.0.1:9092 --output activity

A Structured Streaming job over `__consumer_offsets`, in which a broker stores its groups; docs/GROUP_ACTIVITY.md
describes the tables. `spark-submit` can run this file.

Laws
    A micro-batch writes its rows into folders of its own number and overwrites them when it runs again: a restart from
    the checkpoint neither duplicates nor loses rows.
    Records that cannot be decoded are counted in the table `skipped` and do not stop the job.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rota.client.log import logger
from rota.client.other_clients import ALIASES
from rota.client.security_config import SecurityConfig
from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines import tables
from rota.spark_connector.pipelines.ends import end_offsets
from rota.spark_connector.pipelines.lag import GroupPosition, positions_by_window, with_lags
from rota.spark_connector.pipelines.reading import BATCH
from rota.spark_connector.source import register

TOPIC: Final = "__consumer_offsets"
SECURITY_SETTINGS: Final = {each.name.replace("_", ".") for each in fields(SecurityConfig)} | set(ALIASES)
_log = logger("rota.spark")


@dataclass(frozen=True, slots=True)
class Job:
    """The job's parameters. `checkpoint` "": in the output folder. `trigger`: once, available-now, or an interval."""

    bootstrap_servers: str
    output: str
    checkpoint: str = ""
    window: str = "1 minute"
    trigger: str = "available-now"
    starting: str = "earliest"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def checkpoint_path(self) -> str:
        """The folder of the checkpoint."""
        return self.checkpoint or f"{self.output}/_checkpoint"

    @property
    def source(self) -> dict[str, str]:
        """The options of the source. Records that retention deletes before the job reads them do not stop it."""
        own = {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "kafka.isolation.level": "read_committed",
            "subscribe": TOPIC,
            "startingOffsets": self.starting,
            "failOnDataLoss": "false",
        }
        return {**own, **self.options}

    @property
    def client(self) -> dict[str, str]:
        """The settings of the client that lists offsets: its address, id, timeout and security."""
        own = {"bootstrap.servers", "client.id", "request.timeout.ms", *SECURITY_SETTINGS}
        given = {name.removeprefix("kafka."): value for name, value in self.source.items() if name.startswith("kafka.")}
        return {name: value for name, value in given.items() if name in own}

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
    if _exists(spark, f"{job.output}/lag") and not _exists(spark, f"{job.checkpoint_path}/offsets"):
        raise OptionError(
            "--output",
            job.output,
            f"empty, or used with the checkpoint of its tables ({job.checkpoint_path} is empty)",
        )
    read = spark.readStream.format("rota").options(**job.source).load()
    writer = (
        tables.events(read).writeStream.queryName("group_activity").option("checkpointLocation", job.checkpoint_path)
    )
    return writer.trigger(**job.when).foreachBatch(partial(write_batch, job=job)).start()


def write_batch(batch: DataFrame, number: int, *, job: Job) -> None:
    """Write the rows of one micro-batch into its folders."""
    events = tables.with_windows(batch, job.window).persist()
    try:
        for make in (tables.commits, tables.rebalances, tables.members, tables.skipped):
            _write(make(events), job, make.__name__, number)
    finally:
        events.unpersist()
    new = tables.collect_positions(_written(batch, job, "commits", number), "last_offset")
    rows = positions_by_window(new, _previous(batch, job, number))
    ends = end_offsets(job.client, {position.log_at_time for position in rows})
    _write(tables.lags(batch.sparkSession, with_lags(rows, ends)), job, "lag", number)
    _log.info("Wrote the activity of groups", batch=number, output=job.output)


def _write(rows: DataFrame, job: Job, table: str, number: int) -> None:
    rows.coalesce(1).write.mode("overwrite").parquet(f"{job.output}/{table}/{BATCH}={number}")


def _written(batch: DataFrame, job: Job, table: str, number: int) -> DataFrame:
    return batch.sparkSession.read.parquet(f"{job.output}/{table}/{BATCH}={number}")


def _previous(batch: DataFrame, job: Job, number: int) -> list[GroupPosition]:
    """The positions in the table lag of the previous micro-batch."""
    if number == 0:
        return []
    try:
        return tables.collect_positions(_written(batch, job, "lag", number - 1), "committed")
    except AnalysisException:
        _log.warning("The previous micro-batch has no table: idle groups are left out", batch=number)
        return []


def _exists(spark: SparkSession, path: str) -> bool:
    assert spark._jvm is not None
    location = spark._jvm.org.apache.hadoop.fs.Path(path)
    return bool(location.getFileSystem(spark._jsc.hadoopConfiguration()).exists(location))


def parse_arguments(arguments: Sequence[str]) -> Job:
    """From the command line."""
    parser = argparse.ArgumentParser(prog="group_activity", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="brokers, separated by commas")
    parser.add_argument("--output", required=True, metavar="PATH", help="the folder or URL for the tables")
    parser.add_argument("--checkpoint", default="", metavar="PATH", help="the checkpoint folder (OUTPUT/_checkpoint)")
    parser.add_argument("--window", default="1 minute", help="the length of a window (%(default)s)")
    parser.add_argument(
        "--trigger", default="available-now", help="once, available-now, or an interval: '30 seconds' (%(default)s)"
    )
    parser.add_argument("--starting", default="earliest", help="earliest, latest or JSON (%(default)s)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of format('rota')"
    )
    given = vars(parser.parse_args(arguments))
    options = given.pop("option")
    for option in options:
        if "=" not in option:
            parser.error(f"--option {option}: it must be NAME=VALUE, as in maxOffsetsPerTrigger=100000")
    return Job(**given, options=dict(option.split("=", 1) for option in options))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until all records are read or, with an interval, until it is interrupted."""
    job = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.appName("group_activity").getOrCreate()
    query = start(spark, job)
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        query.stop()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
