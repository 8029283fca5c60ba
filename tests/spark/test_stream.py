"""A streaming query with a real Spark: triggers, limits, restarts, topics that come and go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.interop.kit import create_topic, unique, until
from tests.soak import soak_only
from tests.spark.conftest import Options, Sent, written
from tests.spark.table import ENDS_S, Row, Table, ended, failed, reached, stream

from rota.client import Admin, AdminConfig, TopicPartition

KAFKA_IN_SOAK_ONLY = True

pytestmark = pytest.mark.timeout(600)
Send = Callable[..., None]
NewTopic = Callable[..., str]
IDLE = "spark.sql.streaming.noDataProgressEventInterval"


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path)


def admin(base: Options, call: Callable[[Admin], Any]) -> None:
    async def run() -> None:
        async with Admin(AdminConfig(bootstrap_servers=base["kafka.bootstrap.servers"])) as requests:
            await call(requests)

    asyncio.run(run())


def numbered(count: int, partitions: int = 1, first: int = 0) -> list[Sent]:
    return [Sent(str(at).encode(), partition=at % partitions) for at in range(first, first + count)]


def expected(topic: str, count: int, partitions: int = 1, first: int = 0) -> list[Row]:
    """The rows of the first `count` records that were written with `numbered`."""
    return sorted((topic, at % partitions, at // partitions, str(at).encode()) for at in range(first, first + count))


def test_available_now_reads_in_limited_batches_and_continues_from_its_checkpoint(
    spark: SparkSession, base: Options, new_topic: NewTopic, send: Send, table: Table
) -> None:
    topic = new_topic(2)
    send(topic, numbered(30, 2))
    progress = table.run(stream(spark, base, subscribe=topic, maxOffsetsPerTrigger=12))
    assert [item.numInputRows for item in progress] == [12, 12, 6]
    assert table.rows() == expected(topic, 30, 2)
    assert table.offsets() == [{topic: {"0": at, "1": at}} for at in (6, 12, 15)]
    send(topic, numbered(10, 2, 30))
    again = stream(spark, base, subscribe=topic, startingOffsets="latest")  # the checkpoint goes first
    assert [item.numInputRows for item in table.run(again)] == [10]
    assert table.rows() == expected(topic, 40, 2)


def test_available_now_excludes_records_written_after_its_start(spark: SparkSession, rota: str) -> None:
    topic, seen = create_topic(rota, 1), list[int]()
    written(rota, topic, numbered(10))
    base = {"kafka.bootstrap.servers": rota}

    def each(frame: DataFrame, batch: int) -> None:
        seen.extend(row[0] for row in frame.select("offset").collect())
        written(rota, topic, numbered(3))

    frame = stream(spark, base, subscribe=topic, maxOffsetsPerTrigger=4, minOffsetsPerTrigger=4)
    progress = ended(frame.writeStream.foreachBatch(each).trigger(availableNow=True).start())
    assert seen == list(range(10)), "the last batch is short of minOffsetsPerTrigger, and is read all the same"
    assert json.loads(progress[0].sources[0].latestOffset) == {topic: {"0": 10}}


def test_a_batch_that_failed_is_read_again_as_it_was_also_the_first_one(
    spark: SparkSession, rota: str, tmp_path: Path
) -> None:
    """From the end of a log, which is another one after the failure. Each batch writes its folder anew."""
    topic, failing = create_topic(rota, 2), [0, 2]
    base = {"kafka.bootstrap.servers": rota}

    def each(frame: DataFrame, batch: int) -> None:
        frame.select("topic", "partition", "offset", "value").write.mode("overwrite").parquet(f"{tmp_path}/{batch}")
        if batch in failing:
            failing.remove(batch)
            raise RuntimeError("the user's own")

    frame = stream(spark, base, subscribe=topic, startingOffsets="latest", maxOffsetsPerTrigger=8)
    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", f"{tmp_path}/checkpoint")
    for count in (20, 4):
        assert "the user's own" in failed(writer.trigger(availableNow=True).start())
        written(rota, topic, numbered(count, 2, 20 if count == 4 else 0))
    assert [item.numInputRows for item in ended(writer.trigger(availableNow=True).start())] == [8, 8]
    found = [tuple(row) for batch in range(4) for row in spark.read.parquet(f"{tmp_path}/{batch}").collect()]
    assert sorted((*row[:3], bytes(row[3])) for row in found) == expected(topic, 24, 2)


def test_a_small_batch_is_read_on_the_driver_once_as_tasks_read_it(spark: SparkSession, rota: str) -> None:
    """In every column, also when the records are deleted after that."""
    topic, base = create_topic(rota, 2), {"kafka.bootstrap.servers": rota}
    values = [Sent(b"v%d" % at, key=b"k" if at % 2 else None, partition=at % 2) for at in range(9)]
    written(rota, topic, [*values, Sent(None, b"gone", timestamp_ms=1_700_000_000_123, headers=(("h", b"1"),))])
    found: list[tuple[int, list[Any]]] = []

    def each(frame: DataFrame, batch: int) -> None:
        tasks = frame.rdd.getNumPartitions()  # plans
        if tasks == 1:
            admin(base, lambda requests: requests.delete_records(dict.fromkeys(partitions, -1)))
        found.extend((tasks, sorted(frame.collect(), key=str)) for _ in range(2))

    partitions = [TopicPartition(topic, number) for number in (0, 1)]
    for least in (0, 5_000):
        frame = stream(spark, base, subscribe=topic, includeHeaders=True, minRecordsPerPartition=least)
        ended(frame.writeStream.foreachBatch(each).trigger(availableNow=True).start())
    rows = found[0][1]
    assert len(rows) == 10
    assert found == [(2, rows), (2, rows), (1, rows), (1, rows)]


def test_a_stream_that_is_stopped_and_started_again_has_each_row_once(
    spark: SparkSession, rota: str, table: Table
) -> None:
    topic = create_topic(rota, 2)
    written(rota, topic, numbered(40, 2))
    base = {"kafka.bootstrap.servers": rota, "subscribe": topic, "maxOffsetsPerTrigger": "11"}
    query = table.start(stream(spark, base), processingTime="50 milliseconds")
    until(lambda: len(table.offsets()) >= 2 or query.exception(), "the second batch", seconds=ENDS_S)
    query.stop()
    assert query.exception() is None
    written(rota, topic, numbered(10, 2, 40))
    query = table.start(stream(spark, base, minRecordsPerPartition=0), processingTime="0 seconds")  # in tasks
    reached(query, {topic: {"0": 25, "1": 25}})
    query.stop()
    assert table.rows() == expected(topic, 50, 2)


def test_a_batch_waits_until_it_is_worth_it(spark: SparkSession, rota: str, table: Table) -> None:
    topic = create_topic(rota, 1)
    written(rota, topic, numbered(2))
    base = {"kafka.bootstrap.servers": rota, "minOffsetsPerTrigger": "10", "maxTriggerDelay": "1h"}
    spark.conf.set(IDLE, "20")
    query = table.start(stream(spark, base, subscribe=topic), processingTime="20 milliseconds")
    spark.conf.unset(IDLE)
    reached(query, {topic: {"0": 2}})  # the first one does not wait, as with Spark's own source
    written(rota, topic, numbered(6, first=2))
    until(lambda: seen(query) == 8, "the source to see them", seconds=ENDS_S)
    written(rota, topic, numbered(6, first=8))
    reached(query, {topic: {"0": 14}})
    query.stop()
    assert [item[topic]["0"] for item in table.offsets()] == [2, 14]
    assert table.rows() == expected(topic, 14)


def seen(query: StreamingQuery) -> int:
    """Where the log ended when the query last asked."""
    last = query.lastProgress
    offsets = json.loads((last and last.sources[0].latestOffset) or "{}")
    return max((int(at) for topic in offsets.values() for at in topic.values()), default=0)


def test_topics_and_partitions_that_appear_are_read_from_their_beginning(
    spark: SparkSession, base: Options, new_topic: NewTopic, send: Send, table: Table
) -> None:
    prefix = unique("grows")
    item = new_topic(1, name=f"{prefix}-1")
    frame = stream(spark, base, subscribePattern=f"{prefix}-.*", startingOffsets="latest")
    query = table.start(frame, processingTime="20 milliseconds")
    reached(query, {item: {"0": 0}})
    admin(base, lambda requests: requests.create_partitions({item: 2}))
    send(item, numbered(10, 2))
    two = new_topic(1, name=f"{prefix}-2")
    send(two, numbered(3))
    reached(query, {item: {"0": 5, "1": 5}, two: {"0": 3}})
    query.stop()
    assert table.rows() == expected(item, 10, 2) + expected(two, 3)


@soak_only
def test_a_recreated_topic_fails_the_stream_or_is_read_from_its_start(
    spark: SparkSession, base: Options, new_topic: NewTopic, send: Send, table: Table
) -> None:
    topic = new_topic(1)
    send(topic, numbered(5))
    strict, lossy = (stream(spark, base, subscribe=topic, failOnDataLoss=word) for word in ("true", "false"))
    query = table.start(strict, processingTime="20 milliseconds")
    reached(query, {topic: {"0": 5}})
    admin(base, lambda requests: requests.delete_topics([topic]))
    words = failed(query)
    assert f"{topic}-0 does not exist any more; the query has read it up to offset 5. Set failOnDataLoss=false" in words
    new_topic(1, name=topic)
    send(topic, [b"new"] * 2)
    query = table.start(lossy, processingTime="20 milliseconds")
    reached(query, {topic: {"0": 2}})
    admin(base, lambda requests: requests.delete_topics([topic]))
    new_topic(1, name=topic)
    send(topic, [b"newer"] * 4)  # more than were read of the one before
    reached(query, {topic: {"0": 4}})
    query.stop()
    assert [row[2:] for row in table.rows() if row[3].startswith(b"new")] == [
        (0, b"new"), (0, b"newer"), (1, b"new"), (1, b"newer"), (2, b"newer"), (3, b"newer")
    ]  # fmt: skip


def test_offsets_below_the_log_fail_the_stream_or_are_passed_over(spark: SparkSession, rota: str, table: Table) -> None:
    topic, base = create_topic(rota, 1), {"kafka.bootstrap.servers": rota}
    written(rota, topic, numbered(5))
    strict, lossy = (stream(spark, base, subscribe=topic, failOnDataLoss=word) for word in ("true", "false"))
    table.run(strict)
    written(rota, topic, numbered(5, first=5))
    admin(base, lambda requests: requests.delete_records({TopicPartition(topic, 0): 8}))
    assert f"{topic}-0 lacks offsets 5 to 7: its log begins at 8 and ends at 10" in failed(table.start(strict))
    table.run(lossy)
    assert table.rows() == expected(topic, 5) + expected(topic, 2, first=8)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"startingOfset": "earliest"}, "startingofset is 'earliest'; it must be spelled startingOffsets"),
        ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger is 'many'; it must be an integer of at least 1"),
        ({"assign": '{"t": [0]}'}, "exactly one of assign, subscribe, subscribePattern"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "minOffsetsPerTrigger is 9"),
    ],
)
def test_load_refuses_unknown_options(spark: SparkSession, wrong: Options, words: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        stream(spark, {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "t"}, **wrong)
    assert words in str(caught.value)


def test_start_refuses_options_that_are_not_for_streams(spark: SparkSession, table: Table) -> None:
    base = {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "t"}
    frame = stream(spark, base, endingOffsets="latest")
    with pytest.raises((StreamingQueryException, AnalysisException), match="a stream has no end"):
        failure(table, frame)
    given = spark.readStream.format("rota").options(**base).schema("value string").load()
    with pytest.raises((StreamingQueryException, AnalysisException), match="select and cast afterwards"):
        failure(table, given.selectExpr("'' topic", "0 partition", "0 offset", "value"))


def failure(table: Table, frame: DataFrame) -> None:
    query = table.start(frame)
    query.awaitTermination(60)
