"""The pipeline ingest, run as its users run it: topics of a real broker into tables."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.interop.kit import create_topic, unique, until
from tests.soak import soak_only
from tests.spark.conftest import Sent, written
from tests.spark.test_pipeline import CONF

from rota.client import Admin, AdminConfig, TopicPartition
from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.ingest import DAY, DEAD, RECORDS, Job, follow, start

pytestmark = pytest.mark.timeout(600)
DAY_MS = 86_400_000


def order(number: int, at_ms: int = 0, **more: object) -> bytes:
    time = f"2026-01-{1 + at_ms // DAY_MS:02}T00:00:{at_ms // 1000 % 60:02}Z"
    return json.dumps({"id": number, "at": time, **more}).encode()


def schema_file(folder: Path, text: str = "id long not null, at timestamp, name string") -> str:
    file = folder / "schema"
    file.write_text(text)
    return str(file)


def run(spark: SparkSession, job: Job) -> list[str]:
    """To the end of the topic; the lines of the terminal."""
    lines: list[str] = []
    follow(start(spark, job), lines.append)
    return lines


def ids(spark: SparkSession, output: Path) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(f"{output}/{RECORDS}").select("id").collect())


def committed(address: str, group: str, topic: str) -> tuple[int | None, int | None]:
    async def ask() -> tuple[int | None, int | None]:
        async with Admin(AdminConfig(bootstrap_servers=address)) as admin:
            found = (await admin.group_lag(group))[TopicPartition(topic, 0)]
        return found.committed, found.lag

    return asyncio.run(ask())


def test_json_becomes_a_table_and_what_is_not_becomes_dead_letters(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    topic, group, out = create_topic(rota, 1), unique("ingest"), tmp_path / "out"
    values: list[bytes | None] = [order(1), order(2, DAY_MS, name="b"), order(1), b"nope", b'{"id": "x"}', b"[1]", None]
    values += [b"{}", b"\xff\xfe", b"", b'{"id": 9}', order(3, 9 * DAY_MS)]
    written(rota, topic, [Sent(value, b"k") for value in values])
    job = Job(rota, topic, str(out), schema=schema_file(tmp_path), group=group, event_time="at")
    job = replace(job, deduplicate_by=("id",), watermark="3 days")
    (line,) = run(spark, job)
    assert "12 records" in line
    assert "written 3  dead 8  duplicates 1  late 0  lag 0" in line
    rows = spark.read.parquet(f"{out}/{RECORDS}").orderBy("id").collect()
    assert [(row.id, row.name, str(row[DAY]), row._topic, row._offset) for row in rows] == [
        (1, None, "2026-01-01", topic, 0),
        (2, "b", "2026-01-02", topic, 1),
        (3, None, "2026-01-10", topic, 11),
    ]
    dead = spark.read.parquet(f"{out}/{DEAD}").orderBy("_offset").collect()
    assert [(row._offset, row.reason) for row in dead] == [
        (3, "value is not JSON"),
        (4, "value does not fit the schema: id is not bigint"),
        (5, "value does not fit the schema"),
        (6, "value is null"),
        (7, "a required field is null: id"),
        (8, "value is not UTF-8"),
        (9, "value is not JSON"),
        (10, "at, the event time, is null"),
    ]
    assert bytes(dead[0].value) == b"nope"
    assert bytes(dead[0]._key) == b"k"

    written(rota, topic, [order(2, DAY_MS)])  # the watermark passes it in the next micro-batch
    (line,) = run(spark, job)
    assert "written 0  dead 0  duplicates 1  late 0" in line
    written(rota, topic, [order(4, DAY_MS), b"nope", order(5, 8 * DAY_MS)])
    (line,) = run(spark, job)
    assert "written 1  dead 1  duplicates 0  late 1" in line
    assert ids(spark, out) == [1, 2, 3, 5]
    assert committed(rota, group, topic) == (16, 0)  # 12, 1 and 3 records


def test_a_micro_batch_that_runs_again_changes_nothing_and_days_are_compacted(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    topic, out = create_topic(rota, 1), tmp_path / "out"
    job = Job(rota, topic, str(out), schema=schema_file(tmp_path), event_time="at", compact_after=2, keep_days=5)
    for number in range(4):
        written(rota, topic, [order(number), b"nope"])
        run(spark, job)
    for file in ("3", ".3.crc"):  # as if it had been killed before the end of the micro-batch
        (out / "_checkpoint" / "commits" / file).unlink()
    run(spark, job)
    assert ids(spark, out) == [0, 1, 2, 3]
    assert spark.read.parquet(f"{out}/{DEAD}").count() == 4
    (day,) = (out / RECORDS).glob(f"{DAY}=*")
    assert sorted(folder.name for folder in day.iterdir()) == ["batch_id=2", "batch_id=3"]
    written(rota, topic, [order(9, 9 * DAY_MS)])
    run(spark, job)
    assert ids(spark, out) == [9]  # the days before are too old
    with pytest.raises(OptionError, match="--output"):
        start(spark, Job(rota, topic, str(out), schema=job.schema, checkpoint=str(tmp_path / "another")))


def begun(job: subprocess.Popen[bytes], commit: Path) -> None:
    until(lambda: commit.exists() or job.poll() is not None, f"the micro-batch {commit.name}", seconds=90)
    assert job.poll() is None


class Registry(BaseHTTPRequestHandler):
    """The subject orders-value in two versions; `topic` is any."""

    def do_GET(self) -> None:
        path = self.path.partition("/versions")[2]
        version = {"id": int(path[1:]) + 100, "schema": AVRO[int(path[1:]) - 1]} if path else [1, 2]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(version).encode())

    def log_message(self, *_: object) -> None:
        pass


FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "name", "type": "string", "default": "none"}]}
AVRO = (json.dumps(FIRST), json.dumps(SECOND))


@pytest.mark.usefixtures("official")  # with its jars come those of Avro
def test_avro_with_the_schemas_of_a_registry_and_of_a_file(spark: SparkSession, rota: str, tmp_path: Path) -> None:
    topic, plain = create_topic(rota, 1), create_topic(rota, 1)
    first, second = b"\0\0\0\0\x65", b"\0\0\0\0\x66"
    values = [first + b"\x02", second + b"\x04\x02b", b"\0\0\0\0\x67\x02", b"{}", first + b"\xff", None]
    written(rota, topic, values)
    written(rota, plain, [b"\x06\x02c", b"\xff\xff"])
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        registry = Job(rota, topic, f"{tmp_path}/out", "avro", schema_registry=f"http://127.0.0.1:{server.server_port}")
        query = start(spark, registry)
        server.shutdown()
        thread.join()
    follow(query, print)
    found = spark.read.parquet(f"{tmp_path}/out/{RECORDS}").orderBy("id").collect()
    assert [(row.id, row.name) for row in found] == [(1, "none"), (2, "b")]
    dead = spark.read.parquet(f"{tmp_path}/out/{DEAD}").orderBy("_offset").collect()
    assert [row.reason for row in dead] == [
        "the registry had no schema of this subject with id 103",
        "value does not begin with the id of a schema",
        "value is not Avro of the schema",
        "value is null",
    ]
    run(spark, Job(rota, plain, f"{tmp_path}/plain", "avro", schema=schema_file(tmp_path, AVRO[1])))
    (row,) = spark.read.parquet(f"{tmp_path}/plain/{RECORDS}").collect()
    assert (row.id, row.name) == (3, "c")
    assert spark.read.parquet(f"{tmp_path}/plain/{DEAD}").count() == 1


@soak_only
@pytest.mark.timeout(600)
def test_killed_in_the_middle_it_continues_with_each_record_once(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    topic, out, count = create_topic(rota, 3), tmp_path / "out", 600
    written(rota, topic, [Sent(order(number), partition=number % 3) for number in range(count)])
    call = [sys.executable, "-m", "rota.spark_connector.pipelines.ingest", "--bootstrap-servers", rota]
    call += ["--topics", topic, "--schema", schema_file(tmp_path), "--output", str(out), "--group", unique("killed")]
    call += ["--option", "maxOffsetsPerTrigger=60", "--interval", "0 seconds"]
    conf = " ".join([*(f'"{word}"' for word in CONF), "pyspark-shell"])
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": conf}
    for batch in (1, 4):
        with (tmp_path / "log").open("ab") as log:
            job = subprocess.Popen(call, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            begun(job, out / "_checkpoint" / "commits" / str(batch))
        finally:
            os.killpg(job.pid, signal.SIGKILL)  # of the driver, its JVM and the Python workers
            job.wait()
    done = subprocess.run([*call, "--once"], env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    assert "lag 0" in done.stdout.splitlines()[-1]
    assert ids(spark, out) == list(range(count))
