"""The job group_activity, run as its users run it, over what real consumers did on Rota and on Apache Kafka."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from tests.interop.kit import create_topic, unique
from tests.interop.security.rota_broker import SecureRota
from tests.soak import soak_only
from tests.spark.conftest import Sent, loaded, written
from tools.peer.secure import PASSWORD, USER

import rota.spark_connector.pipelines.group_activity as pipeline
from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, TopicPartition
from rota.protocol import consumer_group_records
from rota.protocol.offsets_records import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value
from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines import tables
from rota.spark_connector.pipelines.group_activity import TOPIC, Job, start
from rota.spark_connector.pipelines.reading import read
from rota.spark_connector.pipelines.report import chart_data, table

KAFKA_IN_SOAK_ONLY = True

FILE = Path(pipeline.__file__)
CONF = [  # as the session of the tests
    word
    for item in (
        "spark.master=local[2]",
        "spark.ui.enabled=false",
        "spark.driver.host=127.0.0.1",
        "spark.driver.bindAddress=127.0.0.1",
        "spark.sql.shuffle.partitions=2",
        "spark.sql.session.timeZone=UTC",
        "spark.log.level=ERROR",
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",  # it does not live long
    )
    for word in ("--conf", item)
]
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True, slots=True)
class Activity:
    """What a group did: it read `topic`, 12 records in each of two partitions, and stands at `offsets`."""

    group: str
    topic: str
    starting: str  # where __consumer_offsets was before
    bootstrap: str


def config(bootstrap: str, group: str, **more: object) -> ConsumerConfig:
    return ConsumerConfig(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,  # how soon it hears of another member
        **more,
    )


async def ends(bootstrap: str, topic: str) -> str:
    """Where the topic of the groups ends now, as JSON."""
    async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
        await admin.alter_group_offsets(unique("first"), {TopicPartition(topic, 0): 1})  # it is made with this
        described = (await admin.describe_topics([TOPIC]))[TOPIC]
        partitions = [TopicPartition(TOPIC, item.partition) for item in described.partitions]
        found = await admin.list_offsets(dict.fromkeys(partitions, -1))
    return json.dumps({TOPIC: {str(item.partition): at.offset for item, at in found.items()}})


async def two_generations(bootstrap: str, topic: str, group: str) -> None:
    """One member reads and commits 5 and 7, a second one comes: a generation more; both leave."""
    async with Consumer(config(bootstrap, group, client_id="one")) as item:
        item.subscribe([topic])
        while len(item.assignment) < 2:
            await item.getmany(timeout_ms=100)
        await item.commit({TopicPartition(topic, 0): 3})
        await item.commit({TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 7})
        async with Consumer(config(bootstrap, group, client_id="two")) as two:
            two.subscribe([topic])
            async with asyncio.timeout(30):
                while len(item.assignment) != 1 or len(two.assignment) != 1:
                    await asyncio.gather(item.getmany(timeout_ms=100), two.getmany(timeout_ms=100))


@pytest.fixture
def activity(bootstrap: str, new_topic: Callable[..., str], send: Callable[..., None]) -> Activity:
    topic, group = new_topic(2), unique("group")
    send(topic, [Sent(b"x", partition=at % 2) for at in range(24)])
    starting = asyncio.run(ends(bootstrap, topic))
    asyncio.run(two_generations(bootstrap, topic, group))
    return Activity(group, topic, starting, bootstrap)


def of(activity: Activity, frame: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    """The group's rows, of all windows."""
    chosen = frame.where(frame["group"] == activity.group).select("window_start", *columns).distinct()
    return sorted(tuple(row)[1:] for row in chosen.collect())


def check(spark: SparkSession, activity: Activity, output: str) -> None:
    """The tables tell what the group did."""
    commits = read(spark, output, "commits")
    assert of(activity, commits, "topic", "partition", "commits", "first_offset", "last_offset") == [
        (activity.topic, 0, 2, 3, 5),
        (activity.topic, 1, 1, 7, 7),
    ]
    lag = read(spark, output, "lag")
    assert of(activity, lag, "topic", "partition", "committed", "end_offset", "lag") == [
        (activity.topic, 0, 5, 12, 7),
        (activity.topic, 1, 7, 12, 5),
    ]
    ((generations, members, most, protocol, rebalances),) = of(
        activity, read(spark, output, "rebalances"), "generations", "members", "members_max", "protocol", "rebalances"
    )
    assert most == 2
    assert rebalances == len(generations) >= 2
    assert generations == sorted(generations)
    assert members in (0, 1)
    assert protocol in ("range", None)


def job(activity: Activity, output: Path, **more: object) -> Job:
    window = {"window": "3650 days"}  # no test is so long that it sees two of them
    return Job(activity.bootstrap, str(output), starting=activity.starting, **{**window, **more})


def run(spark: SparkSession, job: Job) -> None:
    start(spark, job).awaitTermination()


def test_the_tables_have_the_activity_of_a_group(spark: SparkSession, activity: Activity, tmp_path: Path):
    run(spark, job(activity, tmp_path))
    check(spark, activity, str(tmp_path))
    # the topic of the groups is read by its name and not by a pattern
    options = {"kafka.bootstrap.servers": activity.bootstrap}
    assert loaded(spark, options, subscribe=TOPIC, startingOffsets=activity.starting).count() > 0
    assert loaded(spark, options, subscribePattern="__consumer.*").count() == 0


def test_a_time_of_a_wrong_clock_is_in_the_calendar_with_its_window(spark: SparkSession):
    """Python has no year 33658: collecting it would end the job."""
    of_record = (
        F.timestamp_millis(F.lit(10**15)).alias("timestamp"),
        F.lit(0).alias("partition"),
        F.lit(0).alias("offset"),
    )
    records = spark.range(1).select(
        F.lit(TOPIC).alias("topic"), F.lit(b"").alias("key"), F.lit(b"").alias("value"), *of_record
    )
    (row,) = tables.with_windows(tables.events(records), "3650 days").select("at", "window_end").collect()
    assert (row.at.year, 9000 <= row.window_end.year < 9999) == (9000, True)


def test_the_timeline_has_the_reasons_of_rebalances(spark: SparkSession, rota: str, tmp_path: Path):
    topic, group = create_topic(rota, 2), unique("group")
    written(rota, topic, [Sent(b"x", partition=at % 2) for at in range(24)])
    asyncio.run(two_generations(rota, topic, group))
    job = Job(rota, str(tmp_path), window="3650 days", timeline=True, groups=group)
    run(spark, job)
    found = read(spark, str(tmp_path), "timeline").orderBy("sequence").collect()
    assert {row["group"] for row in found} == {group}
    kinds = [row["type"] for row in found]
    assert kinds.count("generation-started") >= 2
    assert {"member-joined", "rebalance-started", "assigned", "member-left"} <= set(kinds)
    started = [row for row in found if row["type"] == "rebalance-started"]
    assert "member-joined" in {row["trigger"] for row in started}
    assert {name for row in started for name in row["members"]} >= {"one", "two"}
    _, data = chart_data(str(tmp_path))
    assert any("member-joined" in mark["reason"] for mark in data["marks"])
    assert len(data["events"]) == len(found)


def rows(output: Path, name: str) -> list[str]:
    """As they lie there, of all micro-batches."""
    return sorted(repr(row) for row in table(str(output), name))


@soak_only
@pytest.mark.parametrize("starter", ["python -m", "spark-submit"])
def test_it_runs_from_the_command_line(secure: SecureRota, tmp_path: Path, starter: str):
    """Over SASL_SSL, with the secrets in a file: they are in nothing that Spark keeps or prints."""
    plain = secure.address("PLAINTEXT")
    topic, group = create_topic(plain, 2), unique("group")
    written(plain, topic, [Sent(b"x", partition=at % 2) for at in range(24)])
    starting = asyncio.run(ends(plain, topic))
    asyncio.run(two_generations(plain, topic, group))
    events, login = tmp_path / "events", tmp_path / "client.properties"
    events.mkdir()
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login.write_text(
        f"security.protocol=SASL_SSL\nssl.truststore.location={secure.ca}\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={module} required username="{USER}" password="{PASSWORD}";\n'
    )
    kept = {"enabled": "true", "dir": events, "compress": "false"}
    conf = [*CONF, *(word for name, value in kept.items() for word in ("--conf", f"spark.eventLog.{name}={value}"))]
    bin_ = Path(sys.executable).parent
    call = {
        "python -m": [sys.executable, "-m", "rota.spark_connector.pipelines.group_activity"],
        "spark-submit": [str(bin_ / "spark-submit"), *conf, str(FILE)],
    }[starter]
    options = {"--bootstrap-servers": secure.address("SASL_SSL"), "--output": str(tmp_path / "out")}
    options |= {"--starting": starting, "--window": "3650 days", "--checkpoint": str(tmp_path / "checkpoint")}
    options |= {"--command-config": str(login), "--lag-max": "1", "--alert-topic": topic}
    given = [word for pair in options.items() for word in pair]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": " ".join([*conf, "pyspark-shell"]),
    }
    done = subprocess.run(
        [*call, *given], check=False, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=400
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "checkpoint" / "commits" / "0").exists()
    found = [row for row in table(str(tmp_path / "out"), "lag") if row["group"] == group]
    assert {(row["partition"], row["committed"], row["lag"]) for row in found} == {(0, 5, 7), (1, 7, 5)}
    log = "".join(file.read_text(errors="replace") for file in events.rglob("*") if file.is_file())
    assert "SparkListenerSQLExecutionStart" in log
    assert PASSWORD not in log + done.stdout + done.stderr


def committed(topic: str, group: str, offset: int | None, second: int) -> Sent:
    """The record of a commit to partition 0."""
    key = encode_key(OffsetCommitKey(group=group, topic=topic, partition=0))
    value = OffsetCommitValue(offset=offset or 0, metadata="", commit_timestamp=0)
    return Sent(None if offset is None else encode_value(value, 4), key, timestamp_ms=second * 1000)


@soak_only
def test_windows_have_the_lag_of_their_time_and_each_row_once(spark: SparkSession, rota: str, tmp_path: Path):
    """Over a topic of our own with the same records, so that times and garbage are ours to choose."""
    offsets, topic, alerts = create_topic(rota, 1), create_topic(rota, 1), create_topic(rota, 1)
    written(rota, topic, [Sent(b"x", timestamp_ms=second * 1000) for second in range(1, 11)])

    def of_consumer_group(key: object, value: object, second: int) -> Sent:
        raw = consumer_group_records.encode_value(value)
        return Sent(raw, consumer_group_records.encode_key(key), timestamp_ms=second * 1000)

    member = consumer_group_records.MemberKey(group="g", member_id="m")
    fields = {"client_id": "c", "client_host": "/h", "subscribed_topic_names": ("t",)}
    own = of_consumer_group(member, consumer_group_records.MemberValue(**fields), 3)
    epochs = [
        of_consumer_group(
            consumer_group_records.EpochKey(group="g"), consumer_group_records.EpochValue(epoch=number), second
        )
        for number, second in ((3, 3), (4, 9))
    ]
    assigned = of_consumer_group(
        consumer_group_records.CurrentAssignmentKey(group="g", member_id="m"),
        consumer_group_records.CurrentAssignmentValue(
            member_epoch=4,
            previous_member_epoch=3,
            state=0,
            assigned_partitions=(consumer_group_records.CurrentPartitions(topic_id=b"t" * 16, partitions=(0, 1)),),
        ),
        9,
    )

    answer = Job(rota, str(tmp_path), window="2 seconds", starting="latest", options={"subscribe": offsets})
    answer = replace(answer, groups="g|gone|quiet", topics=topic, lag_max=8, lag_seconds_max=10, alert_topic=alerts)
    answer = replace(answer, compact_after=1)
    run(spark, answer)  # a micro-batch of nothing, so that the start is known
    garbage = [Sent(b"?", None, timestamp_ms=2000), Sent(b"\0\x63", committed(topic, "g", 0, 0).key, timestamp_ms=2000)]
    newer = Sent(b"", b"\0\x0b", timestamp_ms=3000)
    written(
        rota,
        offsets,
        [committed(topic, "g", 1, 2), committed(topic, "quiet", 0, 3), *garbage, newer, committed(topic, "g", 4, 6)],
    )
    run(spark, answer)
    written(
        rota,
        offsets,
        [
            own,
            epochs[0],
            committed(topic, "g", 7, 9),
            committed(topic, "gone", 1, 9),
            committed(topic, "gone", None, 9),
        ],
    )
    run(spark, answer)
    written(rota, offsets, [committed(topic, "g", 10, 11), committed(topic, "hidden", 1, 11), epochs[1], assigned])
    run(spark, answer)

    day = tmp_path / "lag" / "day=1970-01-01"
    assert {folder.name for folder in day.iterdir()} == {"batch_id=2", "batch_id=3"}  # 1 and 2 are compacted
    before = {name: rows(tmp_path, name) for name in ("commits", "lag")}
    for file in ("3", ".3.crc"):  # as if it had been killed before the end of the micro-batch
        (tmp_path / "_checkpoint" / "commits" / file).unlink()
    run(spark, answer)
    assert {name: rows(tmp_path, name) for name in before} == before
    with pytest.raises(OptionError, match="--output"):
        start(spark, replace(answer, checkpoint=str(tmp_path / "another")))

    lag = read(spark, str(tmp_path), "lag").selectExpr(
        "group", "unix_seconds(window_end)", "committed", "lag", "lag_seconds"
    )
    assert sorted(tuple(row) for row in lag.collect()) == [
        ("g", 4, 1, 2, 2.0),  # of the records at 1, 2 and 3 s it has read the first
        ("g", 8, 4, 3, 3.0),
        ("g", 10, 7, 2, 2.0),
        ("g", 12, 10, 0, 0.0),
        ("gone", 10, None, None, None),
        ("quiet", 4, 0, 3, 3.0),
        ("quiet", 8, 0, 7, 7.0),
        ("quiet", 10, 0, 9, 9.0),
        ("quiet", 12, 0, 10, 11.0),
    ]
    (found,) = read(spark, str(tmp_path), "members").collect()
    columns = ("group", "generation", "member_id", "client_id", "client_host", "topics", "partitions", "type")
    assert tuple(found[name] for name in columns) == ("g", 4, "m", "c", "/h", ["t"], 2, "consumer")
    rebalances = read(spark, str(tmp_path), "rebalances").orderBy("generation").collect()
    assert [(row["generations"], row["members"]) for row in rebalances] == [([3], None), ([4], None)]
    skipped = {row["reason"]: row["records"] for row in read(spark, str(tmp_path), "skipped").collect()}
    assert skipped == {
        "a record without a key": 1,
        "unreadable: OffsetCommitValue of version 99": 1,
        "key of type 11": 1,
    }
    columns = ("group", "unix_seconds(window_end)", "kind", "value", "limit")
    found = read(spark, str(tmp_path), "alerts").selectExpr(*(f"`{c}`" if c == "limit" else c for c in columns))
    assert sorted(tuple(row) for row in found.collect()) == [
        ("quiet", 10, "lag", 9, 8),
        ("quiet", 12, "lag", 10, 8),
        ("quiet", 12, "lag_seconds", 11, 10),
    ]
    sent = loaded(spark, {"kafka.bootstrap.servers": rota}, subscribe=alerts).selectExpr("string(key)", "string(value)")
    assert {(key, json.loads(value)["value"]) for key, value in sent.collect()} == {
        ("quiet", 9),
        ("quiet", 10),
        ("quiet", 11),
    }


@soak_only
def test_a_stopped_group_outlives_the_days_that_expire(spark: SparkSession, rota: str, tmp_path: Path):
    """Also when the job is killed after the days have expired and before Spark's commit."""
    offsets, topic, now = create_topic(rota, 1), create_topic(rota, 1), int(time.time())
    answer = Job(rota, str(tmp_path), window="1 day", options={"subscribe": offsets}, compact_after=2, keep_days=5)
    written(rota, offsets, [committed(topic, "stopped", 1, now - 20 * 86_400)])
    run(spark, answer)
    written(rota, offsets, [committed(topic, "live", 1, now)])
    for _ in range(2):
        run(spark, answer)
        lag = read(spark, str(tmp_path), "lag").orderBy("window_end", "group").collect()
        assert [row["group"] for row in lag] == ["stopped", "live", "stopped"]
        for file in ("1", ".1.crc"):
            (tmp_path / "_checkpoint" / "commits" / file).unlink()


@soak_only
def test_files_of_an_older_version_are_compacted_and_a_backfill_has_the_same_rows(
    spark: SparkSession, rota: str, tmp_path: Path
):
    """Older files of `lag` have no `lag_seconds`."""
    offsets, topic = create_topic(rota, 1), create_topic(rota, 1)
    written(rota, topic, [Sent(b"x", timestamp_ms=second * 1000) for second in range(1, 11)])
    job = Job(rota, str(tmp_path / "out"), window="2 seconds", options={"subscribe": offsets}, compact_after=1)
    for offset in range(1, 4):
        written(rota, offsets, [committed(topic, "g", offset, 2 * offset)])
        run(spark, job)
        if offset == 1:
            (file,) = (tmp_path / "out" / "lag").glob("*/*/*.parquet")
            older = pq.read_table(file, partitioning=None).drop_columns(["lag_seconds"])
            older = older.replace_schema_metadata(None)  # Spark's, which has all columns
            pq.write_table(older, file, use_deprecated_int96_timestamps=True)  # as Spark
            (file.parent / f".{file.name}.crc").unlink()
    day = tmp_path / "out" / "lag" / "day=1970-01-01"
    assert {folder.name for folder in day.iterdir()} == {"batch_id=1", "batch_id=2"}  # 0 and 1 are compacted

    def read_rows(output: str, name: str, *columns: str) -> list[tuple[object, ...]]:
        found = read(spark, output, name).selectExpr("unix_seconds(window_end)", *columns)
        return sorted(tuple(row) for row in found.collect())

    assert read_rows(job.output, "lag", "committed", "lag", "lag_seconds") == [
        (4, 1, 2, 2.0),  # the second micro-batch has the window, too
        (6, 2, 3, 3.0),
        (8, 3, 4, 4.0),
    ]
    backfill = replace(job, output=str(tmp_path / "backfill"))
    for _ in range(2):
        run(spark, backfill)
        for columns in (("commits", "commits", "last_offset"), ("lag", "committed", "lag")):
            assert read_rows(backfill.output, *columns) == read_rows(job.output, *columns)
    assert None not in {row[1] for row in read_rows(backfill.output, "lag", "lag_seconds")}
