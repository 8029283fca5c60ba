"""Streams of both connectors from three brokers of which one is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import SparkSession
from tests.interop.kit import until
from tests.soak import soak_only
from tests.spark.conftest import Sent, written
from tests.spark.table import ENDS_S, Table, reached
from tools.cluster import Cluster
from tools.zookeeper import missing

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.java,
    pytest.mark.skipif(missing() is not None, reason=f"no ZooKeeper: {missing()}"),
]
PARTITIONS = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster") as running:
        topic = NewTopic("t", PARTITIONS, 3, config={"min.insync.replicas": "2"})
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([topic])["t"].result(ENDS_S)
        yield running


def send(cluster: Cluster, first: int, count: int) -> None:
    records = [Sent(str(at).encode(), partition=at % PARTITIONS) for at in range(first, first + count)]
    written(cluster.bootstrap, "t", records)


@soak_only
@pytest.mark.parametrize("kind", ["rota", "kafka"])
def test_a_stream_continues_when_a_broker_is_killed(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, official: str, kind: str
) -> None:
    assert official == "kafka"
    table = Table(spark, tmp_path)
    send(cluster, 0, 36)
    tasks = {"minRecordsPerPartition": "0"} if kind == "rota" else {}
    stream = spark.readStream.format(kind).option("kafka.bootstrap.servers", cluster.bootstrap)
    frame = stream.options(subscribe="t", startingOffsets="earliest", maxOffsetsPerTrigger="9", **tasks).load()
    query = table.start(frame, processingTime="20 milliseconds")
    try:
        until(lambda: len(table.offsets()) > 1 or query.exception(), "the second batch", seconds=ENDS_S)
        cluster.kill(cluster.leader("t"))
        send(cluster, 36, 18)
        reached(query, {"t": {str(partition): 18 for partition in range(PARTITIONS)}})
    finally:
        query.stop()
    assert sorted(int(row[3]) for row in table.rows()) == list(range(54))
