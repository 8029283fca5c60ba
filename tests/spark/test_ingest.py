"""The pipeline ingest, run as its users run it: topics of a real broker into tables."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow
import pytest
from py4j.protocol import Py4JJavaError
from pyarrow import parquet
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.interop.kit import create_topic, unique, until
from tests.soak import soak_only
from tests.spark.conftest import Sent, written
from tests.spark.test_pipeline import CONF
from tests.unit.spark_connector.pipelines.test_protobuf_messages import descriptor_set, encoded

from rota.client import Admin, AdminConfig, TopicPartition
from rota.client.producer.producer import TIMESTAMP_MAX
from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines import ingest
from rota.spark_connector.pipelines.ingest import DAY, DEAD, RECORDS, Job, start
from rota.spark_connector.pipelines.maintenance import compact
from rota.spark_connector.pipelines.protobuf_messages import ProtobufMessage
from rota.spark_connector.pipelines.table_files import TableFiles

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
    ingest.run(spark, job, lines.append)
    return lines


def ids(spark: SparkSession, output: Path) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(f"{output}/{RECORDS}").select("id").collect())


def committed(address: str, group: str, topic: str) -> tuple[int | None, int | None]:
    async def send_request() -> tuple[int | None, int | None]:
        async with Admin(AdminConfig(bootstrap_servers=address)) as admin:
            found = (await admin.group_lag(group))[TopicPartition(topic, 0)]
        return found.committed, found.lag

    return asyncio.run(send_request())


def test_a_run_that_ends_with_an_error_leaves_no_query_without_its_lock(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    """As when the terminal is closed: a second run of the job would write the micro-batch of the first."""
    topic = create_topic(rota, 1)
    written(rota, topic, [order(1)])
    job = Job(rota, topic, str(tmp_path / "out"), schema=schema_file(tmp_path), interval="1 second")

    def show(line: str) -> None:
        raise BrokenPipeError(line)

    with pytest.raises(BrokenPipeError, match="1 records"):
        ingest.run(spark, job, show)
    assert not [query.name for query in spark.streams.active]


def test_json_becomes_a_table_and_what_is_not_becomes_dead_letters(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    topic, group, out = create_topic(rota, 1), unique("ingest"), tmp_path / "out"
    values: list[bytes | None] = [order(1), order(2, DAY_MS, name="b"), order(1), b"nope", b'{"id": "x"}', b"[1]", None]
    values += [b"{}", b"\xff\xfe", b"", b'{"id": 9}', order(7) + order(8), order(7) + b"\n" + order(8) + b"\n"]
    last = order(3, 9 * DAY_MS).replace(b"}", b', "other": [NaN, {"x": {}}]}\n')
    values += [order(7) + b", " + order(8), b" " + last, order(7) + b"], [" + order(8), order(7) + b"]"]
    values += [order(7, more={"x": [{}]}) + after for after in (b"]", b"]}", b"}", b"]}]", b'],"x":[1')]
    written(rota, topic, [Sent(value, b"k") for value in values])
    schema = schema_file(tmp_path, "id long not null, at timestamp, name string, _corrupt string")
    job = Job(rota, topic, str(out), schema=schema, group=group, event_time="at")
    job = replace(job, deduplicate_by=("id",), watermark="3 days")
    (line,) = run(spark, job)
    assert "22 records" in line
    assert "written 3  dead 18  duplicates 1  late 0  lag 0" in line
    rows = spark.read.parquet(f"{out}/{RECORDS}").orderBy("id").collect()
    assert [(row.id, row.name, str(row[DAY]), row._topic, row._offset) for row in rows] == [
        (1, None, "2026-01-01", topic, 0),
        (2, "b", "2026-01-02", topic, 1),
        (3, None, "2026-01-10", topic, 14),
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
        *((offset, "value has more after its JSON object") for offset in (11, 12, 13, *range(15, 22))),
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
    assert committed(rota, group, topic) == (26, 0)  # 22, 1 and 3 records
    for others in ((), ("name",)):
        with pytest.raises(OptionError, match="--deduplicate-by"):
            start(spark, replace(job, deduplicate_by=others))


def test_a_micro_batch_that_runs_again_changes_nothing_and_days_are_compacted(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    topic, out = create_topic(rota, 1), tmp_path / "out"
    job = Job(rota, topic, str(out), schema=schema_file(tmp_path), event_time="at", compact_after=1, keep_days=5)
    for number in range(3):
        written(rota, topic, [order(number), b"nope"])
        run(spark, job)
    for file in ("2", ".2.crc"):  # as if it had been killed before the end of the micro-batch
        (out / "_checkpoint" / "commits" / file).unlink()
    run(spark, job)
    assert ids(spark, out) == [0, 1, 2]
    assert spark.read.parquet(f"{out}/{DEAD}").count() == 3
    (day,) = (out / RECORDS).glob(f"{DAY}=*")
    assert sorted(folder.name for folder in day.iterdir()) == ["batch_id=1", "batch_id=2"]  # 0 and 1 are compacted
    written(rota, topic, [order(9, 9 * DAY_MS)])
    run(spark, job)
    assert ids(spark, out) == [9]  # the days before are too old
    with pytest.raises(OptionError, match="--output"):
        start(spark, Job(rota, topic, str(out), schema=job.schema, checkpoint=str(tmp_path / "another")))


def test_what_tasks_of_a_killed_job_had_finished_is_not_in_the_table_twice(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    """Hadoop's committer moves whatever is in _temporary at the end of a job."""
    topic, out = create_topic(rota, 1), tmp_path / "out"
    job = Job(rota, topic, str(out), schema=schema_file(tmp_path))
    written(rota, topic, [order(0)])
    run(spark, job)
    (file,) = (out / RECORDS).glob("*/*/*.parquet")
    left = out / RECORDS / "_temporary/0/task_202601010000000000000000000000000_0001_m_000000"
    (left / file.relative_to(out / RECORDS)).parent.mkdir(parents=True)
    shutil.copy(file, (left / file.relative_to(out / RECORDS)).with_name("of-the-killed-job.parquet"))
    for name in ("0", ".0.crc"):
        (out / "_checkpoint" / "commits" / name).unlink()
    run(spark, job)
    assert ids(spark, out) == [0]


def test_compaction_drops_no_file_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the session says about files that are corrupt or missing."""
    days = [tmp_path / "day=2026-01-01" / f"batch_id={number}" for number in range(2)]
    for number, folder in enumerate(days):
        folder.mkdir(parents=True)
        parquet.write_table(pyarrow.table({"id": [number]}), folder / "part.parquet")
    whole = (days[0] / "part.parquet").read_bytes()
    (days[0] / "part.parquet").write_bytes(b"PAR1" + bytes(len(whole) - 4))
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(Py4JJavaError, match="FAILED_READ_FILE"):
            compact(spark, TableFiles(str(tmp_path), "day"), "day=2026-01-01", [0, 1], "id long")
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert all((folder / "part.parquet").exists() for folder in days)


@soak_only
def test_a_file_that_cannot_be_read_ends_the_job_until_it_can(spark: SparkSession, rota: str, tmp_path: Path) -> None:
    """The same in a job that goes on when the file is there again."""
    topic, out = create_topic(rota, 1), tmp_path / "out"
    job = Job(rota, topic, str(out), schema=schema_file(tmp_path), compact_after=1)
    for number in range(2):
        written(rota, topic, [order(number)])
        run(spark, job)
    (file,) = (out / RECORDS).glob("*/batch_id=0/*.parquet")
    (file.parent / f".{file.name}.crc").unlink()
    whole = file.read_bytes()
    file.write_bytes(b"PAR1" + bytes(len(whole) - 4))
    written(rota, topic, [order(2)])
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(StreamingQueryException):
            run(spark, job)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    file.write_bytes(whole)
    run(spark, job)
    assert ids(spark, out) == [0, 1, 2]


def test_names_that_differ_only_in_case_are_refused_before_the_query_starts(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    topic, out = create_topic(rota, 1), tmp_path / "out"
    with pytest.raises(OptionError, match="no more than case"):
        start(spark, Job(rota, topic, str(out), schema=schema_file(tmp_path, "id long, ID long")))


def test_times_of_a_wrong_clock_become_dead_letters_and_expire_no_day(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    """Years of five digits, before the year 1, and of the distant future: in the event time and in the timestamp of
    the record, which defines the day of a dead letter."""
    topic = create_topic(rota, 1, config={"message.timestamp.after.max.ms": str((1 << 63) - 1)})
    out = tmp_path / "out"
    job = Job(rota, topic, str(out), schema=schema_file(tmp_path), event_time="at", deduplicate_by=("id",))
    job = replace(job, compact_after=1, keep_days=400_000)
    wrong = [json.dumps({"id": 9, "at": at}).encode() for at in ("+12026-01-01T00:00:00Z", "-0044-03-15T00:00:00Z")]
    wrong += [json.dumps({"id": 9, "at": "9999-12-31T00:00:00Z"}).encode()]
    bad_clock = TIMESTAMP_MAX
    written(rota, topic, [order(1), *(Sent(value, timestamp_ms=bad_clock) for value in wrong)])
    run(spark, job)
    written(rota, topic, [order(2)])  # a watermark of the year 9999 would drop it
    run(spark, job)
    assert ids(spark, out) == [1, 2]
    dead = spark.read.parquet(f"{out}/{DEAD}").orderBy("_offset").select("reason", DAY).collect()
    in_future = "at, the event time, is more than 1 day in the future"
    assert [row.reason for row in dead] == [in_future, "at, the event time, is before the year 1", in_future]
    assert {(datetime.now(UTC).date() - row[DAY]).days for row in dead} <= {0, 1}

    by_timestamp = Job(rota, topic, f"{tmp_path}/by", schema=schema_file(tmp_path))
    run(spark, by_timestamp)
    found = spark.read.parquet(f"{by_timestamp.output}/{DEAD}").select("reason").distinct().collect()
    assert [row.reason for row in found] == ["timestamp, the event time, is more than 1 day in the future"]
    with pytest.raises(OptionError, match="--event-time-ahead-max"):
        start(spark, replace(by_timestamp, output=f"{tmp_path}/none", event_time_ahead_max="300000 years"))
    with pytest.raises(OptionError, match="--deduplicate-by"):
        start(spark, replace(by_timestamp, deduplicate_by=("id",)))


@soak_only
def test_protobuf_with_and_without_the_frame_of_a_registry(spark: SparkSession, rota: str, tmp_path: Path) -> None:
    descriptors = tmp_path / "shop.desc"
    descriptors.write_bytes(descriptor_set())
    order = ProtobufMessage(descriptor_set(), "shop.Order")
    raw = [encoded(order, id=number, name=f"n{number}", tags={"a": number}, lines=[{"sku": "s"}]) for number in (1, 2)]
    raw[0] = encoded(order, id=1, name="n1", at={"seconds": 1_767_225_600}, big=(1 << 64) - 1)
    plain, framed = create_topic(rota, 1), create_topic(rota, 1)
    written(rota, plain, [*raw, b"\xff", None])
    written(rota, framed, [*(b"\0\0\0\0\x07\x02\x02" + value for value in raw), b"\0\0\0\0\x07\0", raw[0]])
    reasons = {
        plain: ["value is not Protobuf of the message", "value is null"],
        framed: ["value is the message [0] of its schema, not [1]", "value does not begin with the id of a schema"],
    }
    for topic in (plain, framed):
        output = f"{tmp_path}/{topic}"
        job = Job(
            rota, topic, output, "protobuf", schema=str(descriptors), message="shop.Order", framed=topic == framed
        )
        run(spark, replace(job, deduplicate_by=("id",)))
        rows = spark.read.parquet(f"{output}/{RECORDS}").orderBy("id").collect()
        assert [(row.id, row.name, row.kind, row.big) for row in rows] == [
            (1, "n1", "NEW", Decimal((1 << 64) - 1)),
            (2, "n2", "NEW", Decimal(0)),
        ]
        assert [row.at for row in rows] == [datetime(2026, 1, 1), None]
        assert (rows[1].tags, rows[1].lines[0].sku, rows[0].tags) == ({"a": 2}, "s", {})
        dead = spark.read.parquet(f"{output}/{DEAD}").orderBy("_offset").collect()
        assert [row.reason for row in dead] == reasons[topic]


@soak_only
def test_a_new_field_is_compacted_with_old_files_and_a_backfill_gives_it_to_all_records(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    topic, out = create_topic(rota, 1), tmp_path / "out"
    old = Job(rota, topic, str(out), schema=schema_file(tmp_path, "id long, at timestamp"), event_time="at")
    old = replace(old, compact_after=1)
    (tmp_path / "new").mkdir()
    new = replace(old, schema=schema_file(tmp_path / "new"))
    for number, job in enumerate((old, new, new)):
        written(rota, topic, [order(number, name=f"n{number}")])
        run(spark, job)
    (day,) = (out / RECORDS).glob(f"{DAY}=*")
    assert sorted(folder.name for folder in day.iterdir()) == ["batch_id=1", "batch_id=2"]  # 0 and 1 are compacted

    def rows(output: str) -> list[tuple[int, str | None]]:
        table = spark.read.option("mergeSchema", "true").parquet(f"{output}/{RECORDS}")
        return sorted((row.id, row.name) for row in table.collect())

    assert rows(str(out)) == [(0, None), (1, "n1"), (2, "n2")]
    backfill = replace(new, output=f"{tmp_path}/backfill", starting=json.dumps({topic: {"0": 1}}))
    expected = [(number, f"n{number}") for number in (1, 2)]
    run(spark, backfill)
    assert rows(backfill.output) == expected
    for file in ("0", ".0.crc"):  # as if it had been killed before the end of the micro-batch
        Path(backfill.checkpoint_path, "commits", file).unlink()
    run(spark, backfill)
    assert rows(backfill.output) == expected


def begun(job: subprocess.Popen[bytes], commit: Path) -> None:
    until(lambda: commit.exists() or job.poll() is not None, f"the micro-batch {commit.name}", seconds=90)
    assert job.poll() is None


class Registry(BaseHTTPRequestHandler):
    """One subject, whatever its name, with two versions; and the schema 200, of another subject."""

    is_third_known = False

    def do_GET(self) -> None:
        path, _, _ = self.path.partition("?")
        numbers = [1, 2, 3] if self.is_third_known else [1, 2]
        answers = {f"versions/{each}": {"id": each + 100, "schema": AVRO[each - 1]} for each in numbers}
        answers |= {"versions": numbers, "schemas/ids/200": {"schema": AVRO[0]}}
        answers |= {f"schemas/ids/{each + 100}": {"schema": AVRO[each - 1]} for each in numbers}
        found = next((answer for end, answer in answers.items() if path.endswith(end)), None)
        self.send_response(404 if found is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[str]:
    """Its URL."""
    Registry.is_third_known = False
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "name", "type": "string", "default": "none"}]}
THIRD = {**FIRST, "fields": [*SECOND["fields"], {"name": "count", "type": "int", "default": 7}]}
AVRO = (json.dumps(FIRST), json.dumps(SECOND), json.dumps(THIRD))


@pytest.mark.usefixtures("official")  # with its jars come those of Avro
def test_avro_with_the_schemas_of_a_registry_and_of_a_file(
    spark: SparkSession, rota: str, tmp_path: Path, registry: str
) -> None:
    topic, plain = create_topic(rota, 1), create_topic(rota, 1)
    first, second, other = (b"\0\0\0\0" + bytes([number]) for number in (101, 102, 200))
    values = [first + b"\x02", second + b"\x04\x02b", b"\0\0\0\0\x67\x02", b"{}", first + b"\xff", None]
    written(rota, topic, [*values, other + b"\x06"])
    written(rota, plain, [b"\x06\x02c", b"\xff\xff"])
    run(spark, Job(rota, topic, f"{tmp_path}/out", "avro", schema_registry=registry))
    found = spark.read.parquet(f"{tmp_path}/out/{RECORDS}").orderBy("id").collect()
    assert [(row.id, row.name) for row in found] == [(1, "none"), (2, "b"), (3, "none")]
    dead = spark.read.parquet(f"{tmp_path}/out/{DEAD}").orderBy("_offset").collect()
    assert [row.reason for row in dead] == [
        "the registry has no Avro schema with id 103",
        "value does not begin with the id of a schema",
        "value is not Avro of the schema",
        "value is null",
    ]
    run(spark, Job(rota, plain, f"{tmp_path}/plain", "avro", schema=schema_file(tmp_path, AVRO[1])))
    (row,) = spark.read.parquet(f"{tmp_path}/plain/{RECORDS}").collect()
    assert (row.id, row.name) == (3, "c")
    assert spark.read.parquet(f"{tmp_path}/plain/{DEAD}").count() == 1


@soak_only
@pytest.mark.usefixtures("official")
def test_a_schema_that_is_registered_while_the_job_runs(
    spark: SparkSession, rota: str, tmp_path: Path, registry: str
) -> None:
    """No good record becomes a dead letter, and the table gets the new field."""
    topic = create_topic(rota, 1)
    written(rota, topic, [b"\0\0\0\0\x65\x02"])
    job = Job(rota, topic, f"{tmp_path}/out", "avro", schema_registry=registry, interval="0 seconds")
    query, lines = start(spark, job), list[str]()
    until(lambda: query.lastProgress and query.lastProgress.numInputRows, "the first micro-batch", seconds=90)
    Registry.is_third_known = True
    written(rota, topic, [b"\0\0\0\0\x67\x04\x02b\x10"])
    with pytest.raises(StreamingQueryException, match="the registry has new schemas, with the ids 103"):
        query.awaitTermination(90)
    ingest.run(spark, replace(job, interval=""), lines.append)
    table = spark.read.option("mergeSchema", "true").parquet(f"{tmp_path}/out/{RECORDS}").orderBy("id")
    assert [(row.id, row.name, row["count"]) for row in table.collect()] == [(1, "none", None), (2, "b", 8)]
    assert list((tmp_path / "out" / DEAD).glob(f"{DAY}=*")) == []


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
