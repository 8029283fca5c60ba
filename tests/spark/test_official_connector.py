"""Spark's own Kafka connector, unmodified, reads from and writes to the broker; side by side with ours, equal rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from tests.interop.kit import unique
from tests.soak import soak_only
from tests.spark.conftest import Options, Sent, loaded, rows

KAFKA_IN_SOAK_ONLY = True

NewTopic = Callable[..., str]
Send = Callable[..., None]


def test_both_read_the_same_rows(
    spark: SparkSession, base: Options, new_topic: NewTopic, send: Send, official: str
) -> None:
    topic = new_topic(3)
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        sent = [Sent(b"%d" % at * (at % 50), b"k%d" % at, at % 3, 1000 + at) for at in range(200)]
        send(topic, sent, compression_type=codec)
    mine, theirs = (loaded(spark, base, kind, subscribe=topic) for kind in ("rota", official))
    assert mine.count() == theirs.count() == 200 * len(codecs)
    assert rows(mine) == rows(theirs)


def test_it_writes_and_both_read(spark: SparkSession, base: Options, new_topic: NewTopic, official: str) -> None:
    topic = new_topic(4)
    numbers = spark.range(500).selectExpr(
        "cast(id as string) AS key",
        "repeat('v', cast(id % 20 as int)) AS value",
        "array(struct('h' AS key, cast('1' as binary) AS value)) AS headers",
    )
    numbers.write.format(official).options(**base, topic=topic, includeHeaders="true").save()
    mine, theirs = (
        rows(loaded(spark, base, kind, subscribe=topic, includeHeaders="true")) for kind in ("rota", official)
    )
    assert mine == theirs
    assert sorted(int(row[0]) for row in mine) == list(range(500))
    assert {row[7][0].key for row in mine} == {"h"}
    again = new_topic(4)
    numbers.write.format("rota").options(**base, topic=again, includeHeaders="true").mode("append").save()
    placed = {bytes(row[0]): row[3] for row in mine}
    assert {bytes(row[0]): row[3] for row in rows(loaded(spark, base, official, subscribe=again))} == placed


@soak_only
def test_a_stream_continues_from_its_checkpoint(
    spark: SparkSession, base: Options, new_topic: NewTopic, send: Send, official: str, tmp_path: Path
) -> None:
    topic, table = new_topic(2), unique("seen").replace("-", "_")

    def keep(batch: DataFrame, _: int) -> None:
        batch.write.mode("append").parquet(str(tmp_path / table))

    def run() -> None:
        stream = spark.readStream.format(official).options(**base, subscribe=topic, startingOffsets="earliest")
        kept = stream.option("maxOffsetsPerTrigger", "25").load().writeStream.foreachBatch(keep)
        query = kept.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(60)

    for first in (0, 40):
        send(topic, [Sent(b"%d" % at, None, at % 2) for at in range(first, first + 40)])
        run()
    found = spark.read.parquet(str(tmp_path / table))
    assert sorted(int(bytes(row.value)) for row in found.collect()) == list(range(80))
    assert rows(found) == rows(loaded(spark, base, subscribe=topic))
