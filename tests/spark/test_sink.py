"""Writing with a real Spark, batches and streams, to Rota and to Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.soak import soak_only
from tests.spark.conftest import Options, loaded, rows

from rota.client import PartitionReader, TopicPartition
from rota.protocol.records.batch import headers
from rota.spark_connector.sink import BATCH_BYTES

KAFKA_IN_SOAK_ONLY = True

New = Callable[..., str]
PARTITIONS = 5
KEYS = [f"key-{number}" for number in range(200)] + ["", "ключ", "k" * 300]


def save(frame: DataFrame, options: Options, kind: str = "rota", **more: object) -> None:
    given = {**options, **{name: str(value) for name, value in more.items()}}
    frame.write.format(kind).mode("append").options(**given).save()


def failure(frame: DataFrame, options: Options, **more: object) -> str:
    """What a user reads when a write fails."""
    with pytest.raises(PySparkException) as wrong:
        save(frame, options, **more)
    return str(wrong.value)


def test_columns_become_records(spark: SparkSession, base: Options, new_topic: New):
    one, two = new_topic(2), new_topic(1)
    schema = "key string, value binary, topic string, partition int, headers array<struct<key:string,value:binary>>"
    given = [
        ("a", b"\xff\x00", one, 1, [("h", b"1"), ("n", None)]),
        (None, None, one, 0, None),
        ("b", b"", two, None, []),
    ]
    save(spark.createDataFrame(given, schema), base)
    found = rows(loaded(spark, base, subscribe=f"{one},{two}", includeHeaders=True))
    answer = {
        (topic, partition): (
            key and bytes(key),
            None if value is None else bytes(value),
            pairs and [*map(tuple, pairs)],
        )
        for key, value, topic, partition, *_, pairs in found
    }
    assert answer == {
        (one, 1): (b"a", b"\xff\x00", [("h", b"1"), ("n", None)]),
        (one, 0): (None, None, None),
        (two, 0): (b"b", b"", None),
    }


def test_keys_are_partitioned_as_by_other_clients(spark: SparkSession, base: Options, new_topic: New, bootstrap: str):
    ours, theirs = new_topic(PARTITIONS), new_topic(PARTITIONS)
    save(spark.createDataFrame([(key, "v") for key in KEYS], "key string, value string"), base, topic=ours)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for key in KEYS:
        producer.produce(theirs, b"v", key.encode())
    assert producer.flush(20) == 0
    assert partitions(spark, base, ours) == partitions(spark, base, theirs)


def test_keys_go_where_the_official_connector_sends_them(
    spark: SparkSession, official: str, base: Options, new_topic: New
):
    ours, theirs = new_topic(PARTITIONS), new_topic(PARTITIONS)
    frame = spark.createDataFrame([(key, "v") for key in KEYS], "key string, value string")
    save(frame, base, topic=ours)
    save(frame, base, official, topic=theirs)
    assert partitions(spark, base, ours) == partitions(spark, base, theirs)


def partitions(spark: SparkSession, base: Options, topic: str) -> dict[bytes, int]:
    found = loaded(spark, base, subscribe=topic).select("key", "partition").collect()
    assert len(found) == len(KEYS)
    return {bytes(row.key): row.partition for row in found}


def test_producers_are_idempotent(spark: SparkSession, base: Options, new_topic: New, bootstrap: str):
    topic = new_topic(1)
    save(spark.range(0, 3, 1, 1).selectExpr("repeat('x', 100000) AS value"), base, topic=topic)

    async def raw() -> bytes:
        async with PartitionReader.from_properties({"bootstrap.servers": bootstrap}) as reader:
            return bytes((await reader.fetch_raw(TopicPartition(topic, 0), 0)).batches)

    found = [header for _, header in headers(asyncio.run(raw()))]
    assert BATCH_BYTES < 2 * 100_000
    assert [one.base_sequence for one in found] == [0, 1, 2]
    assert {one.producer_id for one in found} != {-1}


def test_a_record_that_the_topic_refuses_fails_the_write(spark: SparkSession, base: Options, new_topic: New):
    topic = new_topic(1, cleanup_policy="compact")
    answer = failure(spark.createDataFrame([("no key",)], "value string"), base, topic=topic)
    assert "INVALID_RECORD" in answer
    assert f"{topic}-0" in answer


def test_a_record_that_is_too_large_fails_the_write(spark: SparkSession, base: Options, new_topic: New):
    topic = new_topic(1, max_message_bytes="1000")
    large = spark.createDataFrame([("x" * 2000,)], "value string")
    assert "MESSAGE_TOO_LARGE" in failure(large, base, topic=topic)
    own = {**base, "kafka.max.request.size": "1500"}
    assert "max_request_size" in failure(large, own, topic=topic)


def test_invalid_columns_and_options_are_refused(spark: SparkSession, base: Options):
    frame = spark.createDataFrame([(1, "x")], "number int, value string")
    assert "among key, value, topic, partition, headers" in failure(frame, base, topic="t")
    assert "option topic" in failure(frame.select("value"), base)
    assert "acks" in failure(frame.select("value"), base, topic="t", **{"kafka.acks": "some"})
    with pytest.raises((AnalysisException, PySparkException), match="append"):
        frame.select("value").write.format("rota").mode("overwrite").options(**base, topic="t").save()


def copy(spark: SparkSession, base: Options, source: str, target: str, checkpoint: Path) -> None:
    """What there is in `source`, to `target`, as a stream that ends."""
    read = spark.readStream.format("rota").options(**base, subscribe=source, startingOffsets="earliest").load()
    writing = read.select("key", "value", "headers" if "headers" in read.columns else "partition").writeStream
    writing = writing.format("rota").options(**base, topic=target, checkpointLocation=str(checkpoint))
    writing.trigger(availableNow=True).start().awaitTermination()


@soak_only
def test_a_stream_continues_from_its_checkpoint_without_loss(
    spark: SparkSession, base: Options, new_topic: New, send: Callable[..., None], tmp_path: Path
):
    source, target = new_topic(1), new_topic(1)

    def values() -> list[bytes]:
        return [bytes(row[1]) for row in rows(loaded(spark, base, subscribe=target))]

    send(source, [b"1", b"2"])
    copy(spark, base, source, target, tmp_path)
    send(source, [b"3"])
    copy(spark, base, source, target, tmp_path)
    assert values() == [b"1", b"2", b"3"]

    for file in ("1", ".1.crc"):  # as if it had been killed after the write and before the commit
        (tmp_path / "commits" / file).unlink()
    send(source, [b"4"])
    copy(spark, base, source, target, tmp_path)
    assert values() == [b"1", b"2", b"3", b"3", b"4"]
