"""What the consumer groups of a cluster do, as tables: commits, lag, rebalances and members, for each window of time.

    python -m rota.spark_connector.pipelines.group_activity --bootstrap-servers 127.0.0.1:9092 --output activity

A Structured Streaming job over `__consumer_offsets`, in which a broker keeps its groups; docs/GROUP_ACTIVITY.md
shows what comes out. `spark-submit` runs this file as well.

Laws
    A micro-batch writes its rows into folders of its own number, and writes over them when it runs again: a restart
    from the checkpoint leaves no row twice and none out.
    What is in the topic and cannot be read is counted in the table `skipped` and stops nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rota.client.log import logger
from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines import tables
from rota.spark_connector.pipelines.ends import end_offsets
from rota.spark_connector.pipelines.lag import Standing, compared, standing
from rota.spark_connector.pipelines.reading import BATCH
from rota.spark_connector.source import register

TOPIC: Final = "__consumer_offsets"
_log = logger("rota.spark")


@dataclass(frozen=True, slots=True)
class Job:
    """What to run. `checkpoint` "": beside the tables. `trigger`: once, available-now, or an interval as 30 seconds."""

    bootstrap_servers: str
    output: str
    checkpoint: str = ""
    window: str = "1 minute"
    trigger: str = "available-now"
    starting: str = "earliest"
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def checkpoint_path(self) -> str:
        """Where the progress is kept."""
        return self.checkpoint or f"{self.output}/_checkpoint"

    @property
    def source(self) -> dict[str, str]:
        """The options of the read. Retention may take what the job has not seen: that is no reason to stop."""
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
        """The settings with which the brokers are asked: those of every client."""
        own = ("bootstrap.servers", "client.id", "request.timeout.ms")
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
    """Begin; the query's own methods wait, stop and tell how it goes. Raises OptionError: the folder is in use."""
    register(spark)
    if _exists(spark, f"{job.output}/lag") and not _exists(spark, f"{job.checkpoint_path}/offsets"):
        raise OptionError(
            "--output",
            job.output,
            f"empty, or go on with the checkpoint that belongs to its tables (nothing is in {job.checkpoint_path})",
        )
    read = spark.readStream.format("rota").options(**job.source).load()
    writer = (
        tables.events(read).writeStream.queryName("group_activity").option("checkpointLocation", job.checkpoint_path)
    )
    return writer.trigger(**job.when).foreachBatch(partial(write_batch, job=job)).start()


def write_batch(batch: DataFrame, number: int, *, job: Job) -> None:
    """The rows of one micro-batch, into its own folders."""
    placed = tables.windowed(batch, job.window).persist()
    try:
        for make in (tables.commits, tables.rebalances, tables.members, tables.skipped):
            _write(make(placed), job, make.__name__, number)
    finally:
        placed.unpersist()
    told = tables.standings(_written(batch, job, "commits", number), "last_offset")
    rows = standing(told, _before(batch, job, number))
    ends = end_offsets(job.client, {one.at for one in rows})
    _write(tables.lags(batch.sparkSession, compared(rows, ends)), job, "lag", number)
    _log.info("Wrote the activity of groups", batch=number, output=job.output)


def _write(rows: DataFrame, job: Job, table: str, number: int) -> None:
    rows.coalesce(1).write.mode("overwrite").parquet(f"{job.output}/{table}/{BATCH}={number}")


def _written(batch: DataFrame, job: Job, table: str, number: int) -> DataFrame:
    return batch.sparkSession.read.parquet(f"{job.output}/{table}/{BATCH}={number}")


def _before(batch: DataFrame, job: Job, number: int) -> list[Standing]:
    """The lags of the micro-batch before."""
    if number == 0:
        return []
    try:
        return tables.standings(_written(batch, job, "lag", number - 1), "committed")
    except AnalysisException:
        _log.warning("The table before is gone: groups that do not commit are no longer known", batch=number)
        return []


def _exists(spark: SparkSession, path: str) -> bool:
    assert spark._jvm is not None
    place = spark._jvm.org.apache.hadoop.fs.Path(path)
    return bool(place.getFileSystem(spark._jsc.hadoopConfiguration()).exists(place))


def parsed(arguments: Sequence[str]) -> Job:
    """From the command line."""
    parser = argparse.ArgumentParser(prog="group_activity", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="some brokers, commas between")
    parser.add_argument("--output", required=True, metavar="PATH", help="where the tables go: a folder or a URL")
    parser.add_argument("--checkpoint", default="", metavar="PATH", help="the job's progress; OUTPUT/_checkpoint")
    parser.add_argument("--window", default="1 minute", help="the length of a window (%(default)s)")
    parser.add_argument(
        "--trigger", default="available-now", help="once, available-now, or an interval: '30 seconds' (%(default)s)"
    )
    parser.add_argument("--starting", default="earliest", help="earliest, latest or JSON (%(default)s)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="of format('rota'), for what it reads"
    )
    given = vars(parser.parse_args(arguments))
    options = given.pop("option")
    for one in options:
        if "=" not in one:
            parser.error(f"--option {one}: it must be NAME=VALUE, as in maxOffsetsPerTrigger=100000")
    return Job(**given, options=dict(one.split("=", 1) for one in options))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run until there is no more, or until it is interrupted."""
    job = parsed(sys.argv[1:] if arguments is None else arguments)
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
