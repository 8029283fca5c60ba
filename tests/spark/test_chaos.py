"""A stream from a Rota on disk that is killed, and comes back, or does not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.chaos.daemon import Daemon
from tests.interop.kit import create_topic, until
from tests.soak import soak_only
from tests.spark.conftest import Sent, written
from tests.spark.table import ENDS_S, Table, failed, reached, stream

pytestmark = pytest.mark.timeout(600)
IMPATIENT = {"kafka.request.timeout.ms": "500", "kafka.default.api.timeout.ms": "1500"}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path)


async def lives(daemon: Daemon) -> None:
    """From now on all its lives are at one address."""
    daemon.port = int(daemon.address.rpartition(":")[2])


def values(table: Table) -> list[int]:
    return sorted(int(row[3]) for row in table.rows())


def begun(query: StreamingQuery, table: Table) -> None:
    """It is in its second micro-batch at least."""
    until(lambda: len(table.offsets()) > 1 or query.exception(), "the second batch", seconds=ENDS_S)


async def send(daemon: Daemon, topic: str, first: int, count: int) -> None:
    records = [Sent(str(at).encode(), partition=at % 3) for at in range(first, first + count)]
    await asyncio.to_thread(written, daemon.address, topic, records)


@soak_only
async def test_a_stream_outlives_a_broker_that_is_killed(spark: SparkSession, tmp_path: Path, table: Table) -> None:
    async with Daemon(tmp_path / "data") as daemon:
        await lives(daemon)
        topic = await asyncio.to_thread(create_topic, daemon.address, 3)
        await send(daemon, topic, 0, 36)
        base = {"kafka.bootstrap.servers": daemon.address, "subscribe": topic}
        query = table.start(stream(spark, base, maxOffsetsPerTrigger=9), processingTime="20 milliseconds")
        await asyncio.to_thread(begun, query, table)
        await daemon.crash()
        await send(daemon, topic, 36, 9)
        await asyncio.to_thread(reached, query, {topic: {str(item): 15 for item in range(3)}})
        await daemon.crash()  # and while there is nothing to read
        await send(daemon, topic, 45, 9)
        await asyncio.to_thread(reached, query, {topic: {str(item): 18 for item in range(3)}})
        query.stop()
    assert values(table) == list(range(54))


async def test_without_a_broker_the_stream_fails_and_continues_from_its_checkpoint(
    spark: SparkSession, tmp_path: Path, table: Table
) -> None:
    async with Daemon(tmp_path / "data") as daemon:
        await lives(daemon)
        topic = await asyncio.to_thread(create_topic, daemon.address, 3)
        await send(daemon, topic, 0, 30)
        base = {"kafka.bootstrap.servers": daemon.address, "subscribe": topic, **IMPATIENT}
        frame = stream(spark, base, maxOffsetsPerTrigger=9)
        query = table.start(frame, processingTime="20 milliseconds")
        await asyncio.to_thread(begun, query, table)
        daemon.kill()
        words = await asyncio.to_thread(failed, query)
        assert daemon.address in words, words
        assert "did not succeed within 1500 ms" in words, words
        await daemon.start()
        await send(daemon, topic, 30, 6)
        await asyncio.to_thread(table.run, frame)
    assert values(table) == list(range(36))


async def test_a_task_that_cannot_read_fails_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    async with Daemon(tmp_path / "data") as daemon:
        await lives(daemon)
        topic = await asyncio.to_thread(create_topic, daemon.address, 3)
        await send(daemon, topic, 0, 9)
        base = {"kafka.bootstrap.servers": daemon.address, "subscribe": topic, **IMPATIENT}

        def each(frame: DataFrame, batch: int) -> None:
            planned = frame.rdd
            assert planned.getNumPartitions() == 3
            daemon.kill()
            planned.collect()

        frame = stream(spark, base, minRecordsPerPartition=0)
        query = frame.writeStream.foreachBatch(each).trigger(availableNow=True).start()
        words = await asyncio.to_thread(failed, query)
        await daemon.start()
    assert f"reaching a broker did not succeed within 1500 ms: no connection to broker {daemon.address}" in words, words
