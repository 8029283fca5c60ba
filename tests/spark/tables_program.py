"""The job ingest into Delta or Iceberg, in a process of its own: their packages have no release for every Spark.

    python tables_program.py delta|iceberg BOOTSTRAP FOLDER [SETTING=VALUE ...]

Prints JSON: what the tables had after each run.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rota.client import Producer, ProducerConfig
from rota.spark_connector import register
from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.iceberg_tables import KAFKA_PARTITION, PARTITION
from rota.spark_connector.pipelines.ingest import (
    DEAD,
    RECORDS,
    Job,
    batch_writer,
    decoded,
    decoder,
    deduplicated,
    good_rows,
    run,
    start,
)
from rota.spark_connector.pipelines.micro_batches import numbered

NAMESPACE = "lake.shop"
SCHEMA = "id long not null, at timestamp"


def order(number: int, day: int = 1) -> bytes:
    return json.dumps({"id": number, "at": f"2026-01-{day:02}T00:00:00Z", "name": "n"}).encode()


def send(servers: str, topic: str, *values: bytes) -> None:
    async def write() -> None:
        async with Producer(ProducerConfig(bootstrap_servers=servers)) as producer:
            for value in values:
                await producer.send(topic, value, partition=0)

    asyncio.run(write())


class Tables:
    """A job and what is in its tables."""

    def __init__(self, spark: SparkSession, job: Job) -> None:
        self.spark, self.job = spark, job

    def table(self, name: str) -> DataFrame:
        if self.job.table_format == "iceberg":
            self.spark.catalog.refreshTable(f"{NAMESPACE}.{name}")  # written by a session of its own
            return self.spark.table(f"{NAMESPACE}.{name}")
        return self.spark.read.format("delta").load(f"{self.job.output}/{name}")

    def content(self) -> list[Any]:
        """The ids of the records, and the number of dead letters."""
        return [sorted(row.id for row in self.table(RECORDS).select("id").collect()), self.table(DEAD).count()]

    def killed_between_the_tables(self) -> None:
        """A run whose micro-batch is written into one table only."""

        def write(batch: DataFrame, number: int) -> None:
            self.job.tables()[RECORDS].append(numbered(good_rows(batch), number), number)
            raise RuntimeError("killed")

        self._run(write)

    def killed_before_the_commit(self, number: int) -> list[Any]:
        """As if a run had ended between the tables and the checkpoint; the content after the next run."""
        for file in (f"{number}", f".{number}.crc"):
            Path(self.job.checkpoint_path, "commits", file).unlink()
        return self.after()

    def after(self) -> list[Any]:
        """The content after another run."""
        run(self.spark, self.job, lambda _: None)
        return self.content()

    def twice_in_one_run(self) -> None:
        """A micro-batch that the writer gets again."""

        def write(batch: DataFrame, number: int) -> None:
            for _ in range(2):
                batch_writer(self.job)(batch, number)

        self._run(write)

    def as_of_an_earlier_version(self) -> list[str]:
        """The columns of partitions after a run with tables whose column has a name that Iceberg reserves."""
        for name in (RECORDS, DEAD):
            self.spark.sql(f"ALTER TABLE {NAMESPACE}.{name} RENAME COLUMN {KAFKA_PARTITION} TO {PARTITION}")
        send(self.job.bootstrap_servers, self.job.topics, order(8, day=9), b"nope", order(9, day=9))
        assert self.after() == [[6, 7, 8, 9], 3]
        return [column for name in (RECORDS, DEAD) for column in self.table(name).columns if "partition" in column]

    def refused(self, checkpoint: str) -> str:
        """The error of a run with another checkpoint."""
        try:
            run(self.spark, replace(self.job, checkpoint=checkpoint), lambda _: None)
        except (PySparkException, OptionError) as error:
            return str(error)
        return ""

    def _run(self, write: Any) -> None:
        for table in self.job.tables().values():
            table.prepare(self.spark)
        rows = self.spark.readStream.format("rota").options(**self.job.source).load()
        rows = deduplicated(decoded(rows, decoder(self.job), self.job), self.job)
        writer = rows.writeStream.option("checkpointLocation", self.job.checkpoint_path).trigger(availableNow=True)
        query = writer.foreachBatch(write).start()
        with suppress(PySparkException):
            query.awaitTermination()
        assert query.exception() is None or "killed" in str(query.exception()), query.exception()


def main(kind: str, servers: str, folder: str, *settings: str) -> None:
    builder = SparkSession.builder.appName("tables")
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    register(spark)
    schema = Path(folder, "schema")
    schema.write_text(SCHEMA)
    topic, output = f"orders-{kind}", f"{folder}/{kind}"
    namespace = NAMESPACE if kind == "iceberg" else ""
    job = Job(servers, topic, output, schema=str(schema), event_time="at", table_format=kind, namespace=namespace)
    job = replace(job, compact_after=2, keep_days=5)
    tables = Tables(spark, job)
    found: dict[str, Any] = {"version": spark.version}
    send(servers, topic, order(1), order(2), b"nope")
    tables.killed_between_the_tables()
    found["between"] = tables.after()
    send(servers, topic, order(3), b"nope")
    found["second"] = tables.after()
    shutil.copytree(job.checkpoint_path, f"{folder}/older")
    found["replayed"] = tables.killed_before_the_commit(1)
    send(servers, topic, order(4))
    tables.twice_in_one_run()
    found["twice"] = tables.content()
    schema.write_text(f"{SCHEMA}, name string")
    send(servers, topic, order(5, day=2))
    found["evolved"] = tables.after()
    found["names"] = sorted(str(row["name"]) for row in tables.table(RECORDS).select("name").collect())
    send(servers, topic, order(6, day=9))
    found["expired"] = tables.after()
    try:
        start(spark, replace(job, checkpoint=f"{folder}/another"))
    except OptionError as error:
        found["another"] = str(error)
    send(servers, topic, order(7, day=9))
    found["older"] = "an older copy" in tables.refused(f"{folder}/older")
    shutil.copytree(job.checkpoint_path, f"{folder}/foreign")
    for file in Path(folder, "foreign").glob("*metadata*"):
        file.unlink()
    Path(folder, "foreign", "metadata").write_text('{"id":"00000000-0000-0000-0000-000000000007"}')
    found["foreign"] = "of another" in tables.refused(f"{folder}/foreign")
    found["untouched"] = tables.content() == found["expired"]
    found["last"] = tables.after()
    if kind == "iceberg":
        found["renamed"] = tables.as_of_an_earlier_version()
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
