"""A batch query with a real Spark: rows, plans, options."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession
from tests.spark.conftest import Options, Sent, loaded, rows


def test_records_are_rows(spark: SparkSession, base: Options, new_topic: Callable[..., str], send: Callable[..., None]):
    topic = new_topic(2)
    send(topic, [Sent(b"a", b"k", 0, 1000), Sent(None, b"k", 1, 2000), Sent(b"", None, 0, 3000)])
    frame = loaded(spark, base, subscribe=topic)
    assert [(row[0] and bytes(row[0]), row[1] and bytes(row[1]), *row[2:5]) for row in rows(frame)] == [
        (b"k", b"a", topic, 0, 0),
        (None, b"", topic, 0, 1),
        (b"k", None, topic, 1, 0),
    ]
