"""The connector's parts without a JVM: its readers and writers are called as Spark calls them, on a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

import pytest
from tests.interop.kit import unique

from rota.client import Admin, AdminConfig, NewTopic, Producer, ProducerConfig
from rota.spark_connector.options import stream_options
from rota.spark_connector.stream import RotaStreamReader
from rota.spark_connector.task_clients import POOL
from rota.testing import running_broker

Pairs = Iterable[tuple[bytes | None, bytes | None]]
Write = Callable[..., None]
Opened = Callable[..., RotaStreamReader]


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """HOST:PORT of a Rota in this process."""
    with running_broker({"auto.create.topics.enable": "false"}) as running:
        address = running.bootstrap_servers
        yield address
        POOL.close()  # the idle clients of the tests that were tasks


@pytest.fixture
def base(bootstrap: str) -> dict[str, str]:
    """The option without which nothing goes."""
    return {"kafka.bootstrap.servers": bootstrap}


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A new topic of two partitions."""
    return create(bootstrap, unique("topic"))


def create(bootstrap: str, name: str, partitions: int = 2, **configs: str) -> str:
    async def make() -> None:
        async with Admin(AdminConfig(bootstrap_servers=bootstrap)) as admin:
            given = {item.replace("_", "."): value for item, value in configs.items()}
            await admin.create_topics([NewTopic(name, partitions, 1, configs=given)])

    asyncio.run(make())
    return name


@pytest.fixture
def write(bootstrap: str) -> Write:
    """`write(topic, partition, pairs, **settings)`: each pair a record, with timestamps 1000, 2000, …"""

    def written(topic: str, partition: int, pairs: Pairs, *, headers: tuple = (), **settings: object) -> None:
        async def send() -> None:
            async with Producer(ProducerConfig(bootstrap_servers=bootstrap, **settings)) as producer:
                for at, (key, value) in enumerate(pairs, 1):
                    await producer.send(topic, value, key, partition=partition, timestamp_ms=1000 * at, headers=headers)

        asyncio.run(send())

    return written


@pytest.fixture
def opened(base: dict[str, str]) -> Iterator[Opened]:
    """`opened(subscribe=…)`: a reader that is stopped in the end; from the beginning unless told otherwise."""
    readers: list[RotaStreamReader] = []

    def make(**options: str) -> RotaStreamReader:
        given = {name.replace("group_id", "group.id"): value for name, value in options.items()}
        given = {"startingOffsets": "earliest", "fetchOffset.retryIntervalMs": "1", **given}
        readers.append(RotaStreamReader(stream_options({**base, **given})))
        return readers[-1]

    yield make
    for one in readers:
        one.stop()
