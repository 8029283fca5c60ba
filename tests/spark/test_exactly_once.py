"""A stream whose sink writes in transactions: each record once, whoever is killed, and whenever."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.interop.kit import unique
from tests.soak import SOAK, soak_only
from tests.spark.conftest import Options, Sent
from tests.spark.killing import STEPS, KilledSource, copy
from tests.spark.table import ENDS_S

from rota.client import PartitionReader, TopicPartition
from rota.client.config import ClientConfig

KAFKA_IN_SOAK_ONLY = True

PARTITIONS = 2
GATE = ("prepared", "one committed")  # of a task, and of the driver's Python process: Spark calls abort then
New = Callable[..., str]


def committed(bootstrap: str, topic: str) -> list[bytes]:
    """The values that a reader of committed records sees, in the order of their partitions."""

    async def read() -> list[bytes]:
        config = ClientConfig(bootstrap_servers=bootstrap)
        async with PartitionReader(config, isolation_level="read_committed") as reader:
            infos = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            return [record.value or b"" for one in infos async for record in reader.read(one, -2, -1)]

    return asyncio.run(read())


def is_killed(spark: SparkSession, source: Options, sink: Options, checkpoint: Path) -> bool:
    try:
        copy(spark, source, sink, checkpoint)
    except StreamingQueryException:
        return True
    return False


def test_a_stream_writes_each_record_once_though_its_processes_are_killed(
    spark: SparkSession, base: Options, new_topic: New, send: Callable[..., None], tmp_path: Path, bootstrap: str
) -> None:
    spark.dataSource.register(KilledSource)
    source, target = new_topic(PARTITIONS), new_topic(PARTITIONS)
    given = {**base, "subscribe": source, "startingOffsets": "earliest"}
    sink = {**base, "topic": target, "kafka.transactional.id": unique("sink")}
    sent = 0
    for number, step in enumerate(STEPS if SOAK else GATE):
        values = [f"{step} {at}".encode() for at in range(6)]
        send(source, [Sent(value, partition=at % PARTITIONS) for at, value in enumerate(values)])
        sent += len(values)
        killed = {**sink, "kill": step, "victim": "process", "once": str(tmp_path / f"once-{number}")}
        assert is_killed(spark, given, killed, tmp_path / "checkpoint"), step
        copy(spark, given, killed, tmp_path / "checkpoint")
        found = committed(bootstrap, target)
        assert len(set(found)) == len(found) == sent, (step, sorted(found))


@soak_only
@pytest.mark.usefixtures("java")
@pytest.mark.timeout(1_200)
def test_a_stream_writes_each_record_once_though_its_driver_is_killed(
    base: Options, new_topic: New, send: Callable[..., None], tmp_path: Path, bootstrap: str
) -> None:
    """The JVM and the Python processes below it: another program goes on with the checkpoint."""
    source, target = new_topic(PARTITIONS), new_topic(PARTITIONS)
    given = {**base, "subscribe": source, "startingOffsets": "earliest"}
    sent = 0
    for number, step in enumerate(STEPS):
        values = [f"{step} {at}".encode() for at in range(6)]
        send(source, [Sent(value, partition=at % PARTITIONS) for at, value in enumerate(values)])
        sent += len(values)
        once = tmp_path / f"once-{number}"
        sink = {
            **base,
            "topic": target,
            "kafka.transactional.id": source,
            "kill": step,
            "victim": "driver",
            "once": str(once),
        }
        assert run_driver(given, sink, tmp_path / "checkpoint").returncode != 0, step
        assert once.exists(), step
        ended = run_driver(given, sink, tmp_path / "checkpoint")
        assert ended.returncode == 0, (step, ended.stderr[-3_000:])
        found = committed(bootstrap, target)
        assert len(set(found)) == len(found) == sent, (step, sorted(found))


def run_driver(source: Options, sink: Options, checkpoint: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.spark.driver", json.dumps([source, sink, str(checkpoint)])]
    return subprocess.run(command, capture_output=True, text=True, timeout=ENDS_S, check=False)
