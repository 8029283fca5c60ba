"""A batch query with a real Spark: rows, plans, options; what is fetched, and by whom."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.client.fault_proxy import ProxyConnection, proxy_in_thread
from tests.interop.kit import unique
from tests.spark.conftest import Options, Sent, loaded, rows

from rota.protocol import records
from rota.protocol.messages.fetch import FetchResponse
from rota.spark_connector.schema import spark_schema

NewTopic = Callable[..., str]
Send = Callable[..., None]
LONG = 1_200_000  # bytes of a record that is more than a broker's 1 MB
T0 = 1_763_726_400_000


def offsets(frame: DataFrame) -> list[tuple[int, int]]:
    """(partition, offset) of each row, in order."""
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


def tasks(frame: DataFrame) -> int:
    return frame.rdd.getNumPartitions()


def test_columns_and_types_are_those_of_the_official_connector(
    spark: SparkSession, base: Options, new_topic: NewTopic, official: str
) -> None:
    topic = new_topic()
    for headers in ("false", "true"):
        mine = loaded(spark, base, subscribe=topic, includeHeaders=headers)
        theirs = loaded(spark, base, official, subscribe=topic, includeHeaders=headers)
        assert [(item.name, item.dataType) for item in mine.schema] == [
            (item.name, item.dataType) for item in theirs.schema
        ]
        assert mine.schema == spark_schema(include_headers=headers == "true")


def test_nulls_headers_and_times_are_the_same_rows_as_the_official_connectors(
    spark: SparkSession, base: Options, new_topic: NewTopic, send: Send, official: str
) -> None:
    topic = new_topic(2)
    sent = [
        Sent(b"a", b"k", 0, T0),
        Sent(None, b"k", 0, T0 + 1),
        Sent(b"", None, 1, T0 - 5, (("h", b"1"), ("n", None), ("h", b""))),
        Sent(None, None, 1, T0 + 2),
        Sent(b"\xff\x00", b"", 1, 0, (("ü", b"\xff"),)),
    ]
    send(topic, sent)
    stamped = new_topic(1, message_timestamp_type="LogAppendTime")
    send(stamped, [b"x", b"y"])
    topics = f"{topic},{stamped}"
    mine = rows(loaded(spark, base, subscribe=topics, includeHeaders="true"))
    assert mine == rows(loaded(spark, base, official, subscribe=topics, includeHeaders="true"))
    assert len(mine) == 7
    assert [row[6] for row in mine if row[2] == stamped] == [1, 1]
    assert [row[7] is None for row in mine if row[2] == topic] == [True, True, False, True, False]


def test_topics_without_records_are_no_rows(spark: SparkSession, base: Options, new_topic: NewTopic) -> None:
    frame = loaded(spark, base, subscribe=new_topic(3))
    assert frame.count() == 0
    assert frame.collect() == []


def test_many_partitions(spark: SparkSession, base: Options, new_topic: NewTopic, send: Send) -> None:
    topic, count = new_topic(40), 40
    sent = [divmod(at, count) for at in range(100) if at % count != 7]
    send(topic, [Sent(b"v", None, partition) for _, partition in sent])
    frame = loaded(spark, base, subscribe=topic)
    assert tasks(frame) == count - 1, "an empty partition is no task"
    assert offsets(frame) == sorted((partition, offset) for offset, partition in sent)


def test_long_records_and_every_codec(spark: SparkSession, base: Options, new_topic: NewTopic, send: Send) -> None:
    topic = new_topic(max_message_bytes="4000000")
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for number, codec in enumerate(codecs):
        values = [b"%d-%d" % (number, at) for at in range(50)] + [bytes([number]) * LONG]
        settings = {"compression_type": codec, "max_request_size": 4_000_000}
        send(topic, [Sent(value, codec.encode()) for value in values], **settings)
    frame = loaded(spark, base, subscribe=topic)
    found = frame.selectExpr("offset", "string(key)", "length(value)", "xxhash64(value)").orderBy("offset").collect()
    assert [row[0] for row in found] == list(range(51 * len(codecs)))
    assert [row[2] for row in found].count(LONG) == len(codecs)
    assert [row[1] for row in found] == [codec for codec in codecs for _ in range(51)]
    small = spark.read.format("rota").options(**base, subscribe=topic)
    again = small.option("kafka.max.partition.fetch.bytes", "1000").load()
    assert again.selectExpr("bit_xor(xxhash64(value))").first() == frame.selectExpr("bit_xor(xxhash64(value))").first()


def test_offsets_and_times_bound_the_range(spark: SparkSession, base: Options, new_topic: NewTopic, send: Send) -> None:
    topic = new_topic(2)
    send(topic, [Sent(b"v", None, part, T0 + 1000 * at) for at in range(10) for part in (0, 1)])

    def read(**more: str) -> list[tuple[int, int]]:
        return offsets(loaded(spark, base, **more))

    start, end = json.dumps({topic: {"0": 3, "1": -2}}), json.dumps({topic: {"0": -1, "1": 2}})
    expected = [(0, at) for at in range(3, 10)] + [(1, 0), (1, 1)]
    assert read(subscribe=topic, startingOffsets=start, endingOffsets=end) == expected
    times = {"startingTimestamp": str(T0 + 4500), "endingTimestamp": str(T0 + 7000)}
    assert read(subscribe=topic, **times) == [(part, at) for part in (0, 1) for at in (5, 6)]
    by_partition = {
        "startingOffsetsByTimestamp": json.dumps({topic: {"0": T0 + 9000, "1": T0 + 8000}}),
        "endingOffsetsByTimestamp": json.dumps({topic: {"0": T0 + 99_000, "1": T0 + 9000}}),
    }
    assert read(subscribe=topic, **by_partition) == [(0, 9), (1, 8)]
    assert read(assign=json.dumps({topic: [1]})) == [(1, at) for at in range(10)]


def test_a_pattern_finds_topics(spark: SparkSession, base: Options, new_topic: NewTopic, send: Send) -> None:
    stem = unique("many")
    for name in (f"{stem}-a", f"{stem}-b", f"x{stem}-a"):
        send(new_topic(1, name=name), [b"v"])
    found = loaded(spark, base, subscribePattern=f"{stem}-.*").select("topic").collect()
    assert sorted(row.topic for row in found) == [f"{stem}-a", f"{stem}-b"]


def test_long_ranges_are_cut_for_more_tasks(
    spark: SparkSession, base: Options, new_topic: NewTopic, send: Send
) -> None:
    topic = new_topic(2)
    send(topic, [Sent(b"v", None, 0 if at < 90 else 1) for at in range(120)])
    expected = [(0, at) for at in range(90)] + [(1, at) for at in range(30)]
    for options, count in (({"minPartitions": "8"}, 8), ({"maxRecordsPerPartition": "40"}, 4), ({}, 2)):
        frame = loaded(spark, base, subscribe=topic, **options)
        assert tasks(frame) == count
        assert offsets(frame) == expected


@contextlib.contextmanager
def counting(bootstrap: str) -> Iterator[tuple[str, Counter[tuple[str, int]]]]:
    """The address of a proxy to the broker, and the bytes of records that passed it, by topic and partition."""
    counts: Counter[tuple[str, int]] = Counter()

    class Counted(ProxyConnection):
        async def _send(self, slot: Any, answer: Any) -> None:
            if isinstance(answer, FetchResponse):
                names = {item.topic_id: item.topic for item in slot.request.topics}
                for topic in answer.responses:
                    for item in topic.partitions:
                        name = topic.topic or names.get(topic.topic_id) or str(topic.topic_id)
                        counts[name, item.partition_index] += len(item.records or b"")
            await super()._send(slot, answer)

    with proxy_in_thread(bootstrap, Counted) as address:
        yield address, counts


def test_filters_reduce_the_fetched_bytes(spark: SparkSession, bootstrap: str, new_topic: NewTopic, send: Send) -> None:
    """Shown by the bytes of records that a broker sends: Spark's own filters would come after them."""
    topic = new_topic(4)
    other = new_topic(1)
    sent = [Sent(b"x" * 1000, None, part, T0 + 1000 * at) for at in range(1000) for part in range(4)]
    send(topic, sent)
    send(other, [b"x" * 1000] * 100)
    with counting(bootstrap) as (address, counts):
        frame = loaded(spark, {"kafka.bootstrap.servers": address}, subscribe=f"{topic},{other}")

        def fetched(*conditions: str) -> tuple[list[tuple[int, int]], dict[int, int]]:
            counts.clear()
            found = frame
            for item in conditions:
                found = found.where(item)
            seen = offsets(found)
            return seen, {at: sum(size for place, size in counts.items() if place[1] == at) for at in range(4)}

        rows_seen, whole = fetched()
        assert len(rows_seen) == 4100
        assert min(whole.values()) >= 1_000_000

        rows_seen, some = fetched(f"topic = '{topic}'", "partition = 2")
        assert rows_seen == [(2, at) for at in range(1000)]
        assert some == {0: 0, 1: 0, 2: whole[2], 3: 0}

        rows_seen, few = fetched(f"topic = '{topic}'", "partition IN (1, 3)", "offset >= 500", "offset < 510")
        assert rows_seen == [(part, at) for part in (1, 3) for at in range(500, 510)]
        assert few[0] == few[2] == 0
        assert 10_000 <= few[1] + few[3] < sum(whole.values()) / 10

        rows_seen, late = fetched(f"topic = '{topic}'", f"timestamp >= timestamp_millis({T0 + 990_000})")
        assert rows_seen == [(part, at) for part in range(4) for at in range(990, 1000)]
        assert 40_000 <= sum(late.values()) < sum(whole.values()) / 10


@pytest.mark.parametrize(
    ("option", "given", "error_text"),
    [
        ("startingOfset", "latest", "startingOffsets"),
        ("minPartitions", "0", "at least 1"),
        ("assign", '{"t": [0]}', "exactly one of"),
        ("endingOffsets", "earliest", "latest or JSON"),
        ("kafka.fetch.max.byts", "1", "fetch.max.bytes"),
    ],
)
def test_a_wrong_option_fails_at_load_and_is_named(
    spark: SparkSession, option: str, given: str, error_text: str
) -> None:
    reader = spark.read.format("rota").option("kafka.bootstrap.servers", "127.0.0.1:1").option("subscribe", "t")
    with pytest.raises(PySparkException) as failed:
        reader.option(option, given).load().schema  # noqa: B018
    reply = str(failed.value)
    assert option.removeprefix("kafka.").lower() in reply.lower(), "Spark hands options on in small letters"
    assert error_text in reply


def test_a_schema_that_differs_is_refused(spark: SparkSession, base: Options, new_topic: NewTopic) -> None:
    reader = spark.read.format("rota").options(**base, subscribe=new_topic())
    assert reader.schema(spark_schema(include_headers=False)).load().count() == 0
    with pytest.raises(PySparkException, match=r"option schema is .*key:string.*it must be left out"):
        reader.schema("key string, value binary").load().count()


def test_workers_run_this_python(spark: SparkSession) -> None:
    def ran(_: int) -> tuple[str, bool]:
        import sys

        from rota.protocol import records

        return sys.executable, records.COMPILED

    assert spark.sparkContext.parallelize([0], 1).map(ran).first() == (sys.executable, records.COMPILED)
