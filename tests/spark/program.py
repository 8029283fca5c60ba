"""A program that uses every part of the connector, for a Spark that is not the one of the other tests.

    python program.py BOOTSTRAP FOLDER [SETTING=VALUE ...]

It needs Rota, PySpark and the standard library alone. A setting `remote` is the URL of a Spark Connect server. Prints
JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rota.spark_connector import register

RECORDS = 40
PARTITIONS = 2


def session(settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName("program")
    if "remote" in settings:
        builder = builder.remote(settings.pop("remote"))
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def read(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, **options}
    return spark.read.format("rota").options(**given).load()


def stream(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    return spark.readStream.format("rota").options(**{**given, **options}).load()


def run(frame: DataFrame, kind: str, folder: Path, **options: str) -> None:
    """What there is now, to the end."""
    writer = frame.writeStream.format(kind).options(checkpointLocation=f"{folder}/checkpoint-{kind}", **options)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def refused(action: Callable[[], object]) -> str:
    """The first line of the error; "" when there is none."""
    try:
        action()
    except PySparkException as error:
        return next(line for line in str(error).splitlines() if "option " in line)
    return ""


def write(spark: SparkSession, servers: str, first: int) -> None:
    rows = spark.range(first, first + RECORDS, 1, PARTITIONS).selectExpr(
        "concat('key-', id) AS key", "concat('value-', id) AS value", f"CAST(id % {PARTITIONS} AS int) AS partition"
    )
    rows.write.format("rota").mode("append").options(**{"kafka.bootstrap.servers": servers, "topic": "t"}).save()


def main(servers: str, folder: Path, settings: dict[str, str]) -> dict[str, Any]:
    spark = session(settings)
    register(spark)
    found: dict[str, Any] = {"version": pyspark.__version__, "spark": spark.version}
    write(spark, servers, 0)
    frame = read(spark, servers, "t", minPartitions="4")
    found["rows"] = sorted(bytes(row.value).decode() for row in frame.select("value").collect())
    found["filtered"] = frame.where("partition = 1 AND offset >= 15").count()
    found["headers"] = read(spark, servers, "t", includeHeaders="true").where("headers IS NULL").count()
    frame = stream(spark, servers, "t", **{"group.id": "program"})
    run(frame.selectExpr("CAST(value AS string) AS value"), "parquet", folder, path=f"{folder}/table")
    run(
        frame.selectExpr("key", "upper(CAST(value AS string)) AS value"),
        "rota",
        folder,
        topic="loud",
        **{"kafka.bootstrap.servers": servers},
    )
    write(spark, servers, RECORDS)
    run(frame.selectExpr("CAST(value AS string) AS value"), "parquet", folder, path=f"{folder}/table")
    found["table"] = spark.read.parquet(f"{folder}/table").count()
    found["distinct"] = spark.read.parquet(f"{folder}/table").distinct().count()
    found["copied"] = read(spark, servers, "loud").count()
    limited = stream(spark, servers, "t", maxOffsetsPerTrigger="30")
    found["limits"] = refused(lambda: run(limited.select("value"), "noop", folder))
    found["pipelines"] = pipelines(spark, servers, folder)
    spark.stop()
    return found


def pipelines(spark: SparkSession, servers: str, folder: Path) -> dict[str, Any]:
    """The rows of both jobs' tables."""
    from rota.spark_connector.pipelines import group_activity, ingest, reading

    job = group_activity.Job(servers, f"{folder}/activity", window="3650 days")
    group_activity.start(spark, job).awaitTermination()
    (folder / "schema").write_text("a int")
    into = ingest.Job(servers, "t", f"{folder}/lake", schema=str(folder / "schema"), deduplicate_by=("_key",))
    ingest.start(spark, into).awaitTermination()
    lag = reading.read(spark, f"{folder}/activity", "lag").where("`group` = 'program'")
    return {
        "lag": sorted([row.partition, row.committed, row.lag] for row in lag.collect()),
        "dead": spark.read.parquet(f"{folder}/lake/dead_letters").count(),
    }


if __name__ == "__main__":
    arguments = dict(pair.split("=", 1) for pair in sys.argv[3:])
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), arguments)))
