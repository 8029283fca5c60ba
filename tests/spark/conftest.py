"""Fixtures of the tests with a real Spark: one session for all of them, each test on a Rota and on an Apache Kafka.

Skipped by name where Java is missing; the comparisons with Spark's own connector where Maven or its jars are. With
ROTA_CI set that is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.client.conftest import bootstrap, group, pytest_generate_tests, rota  # noqa: F401 - of these tests too
from tests.interop.kit import create_topic
from tests.interop.security.rota_broker import SecureRota
from tests.spark.home import JVM, QUICK, unpacked
from tools import spark_jars
from tools.peer.jars import Missing

from rota.client import Producer, ProducerConfig

Options = dict[str, str]


@dataclass(frozen=True, slots=True)
class Sent:
    """A record to write; `partition` None leaves it to the partitioner."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = 0
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/spark/" in str(item.path):
            item.add_marker("spark")


def missing(what: str) -> None:
    if os.environ.get("ROTA_CI"):
        pytest.fail(f"in CI nothing is skipped: {what}", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def official_jars() -> list[str]:
    """The jars of Spark's own connector; none where they cannot be had."""
    try:
        return [str(jar) for jar in spark_jars.fetch()]
    except (Missing, subprocess.CalledProcessError, OSError):
        return []


@pytest.fixture(scope="session")
def java() -> None:
    """What any Spark needs."""
    if shutil.which("java") is None:
        missing("java is not installed: no Spark")


@pytest.fixture(scope="session")
def spark(java: None, official_jars: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark of two cores with both connectors: format("rota") and, with its jars, format("kafka")."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    folder = tmp_path_factory.mktemp("spark")
    events = folder / "events"
    events.mkdir()
    settings = {
        "spark.ui.port": "0",
        # what Spark keeps of each query is searched for secrets, in plain text
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(events),
        "spark.eventLog.compress": "false",
        "spark.sql.ui.explainMode": "simple",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": " ".join(JVM),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "ERROR",
        "spark.jars": ",".join(official_jars),
        **QUICK,
    }
    builder = SparkSession.builder.master("local[2]").appName("rota-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_HOME", str(unpacked(folder / "home")))
        session = builder.getOrCreate()
    from rota.spark_connector.source import register

    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureRota]:
    """A Rota whose listeners have TLS and SASL."""
    with SecureRota(tmp_path_factory.mktemp("secure")) as broker:
        yield broker


@pytest.fixture
def official(spark: SparkSession, official_jars: list[str]) -> str:
    """The format of Spark's own connector."""
    if not official_jars:
        missing("Maven or the jars of Spark's Kafka connector are missing")
    return "kafka"


@pytest.fixture
def base(bootstrap: str) -> Options:  # noqa: F811
    """The option without which nothing goes, for either format."""
    return {"kafka.bootstrap.servers": bootstrap}


@pytest.fixture
def new_topic(bootstrap: str) -> Callable[..., str]:  # noqa: F811
    """`new_topic(partitions, **config)`: a topic of its own, with leaders; dots in names are written as _."""

    def create(partitions: int = 1, *, name: str | None = None, **config: str) -> str:
        given = {key.replace("_", "."): value for key, value in config.items()}
        return create_topic(bootstrap, partitions, name=name, config=given)

    return create


@pytest.fixture
def send(bootstrap: str) -> Callable[..., None]:  # noqa: F811
    """`send(topic, records, **settings)`: Sent or plain values, all acknowledged; settings of ProducerConfig."""
    return lambda topic, records, **settings: written(bootstrap, topic, records, **settings)


def written(address: str, topic: str, records: Iterable[Sent | bytes], **settings: Any) -> None:
    """The same for who has an address."""
    import asyncio

    async def write() -> None:
        async with Producer(ProducerConfig(bootstrap_servers=address, **settings)) as producer:
            for entry in records:
                record = entry if isinstance(entry, Sent) else Sent(entry)
                await producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                    headers=record.headers,
                )

    asyncio.run(write())


def loaded(spark: SparkSession, options: Options, kind: str = "rota", **more: Any) -> DataFrame:
    """A batch query: `more` are options without dots in their names."""
    return spark.read.format(kind).options(**options, **{name: str(value) for name, value in more.items()}).load()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All rows, by topic, partition and offset."""
    found = [tuple(row) for row in frame.collect()]
    at = [frame.columns.index(name) for name in ("topic", "partition", "offset")]
    return sorted(found, key=lambda row: tuple(row[entry] for entry in at))
