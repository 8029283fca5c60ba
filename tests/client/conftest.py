"""Fixtures of the client's tests: each test runs on a Rota of its own and, where one runs, on an Apache Kafka.

ROTA_BOOTSTRAP names one broker to run on instead; ROTA_PEER is the Apache Kafka that `make test` and `make interop`
start (with the settings of tests/interop/broker.py: groups begin at once, topics are created when asked for, with four
partitions).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.client.fault_proxy import FaultProxy
from tests.client.filled import filled
from tests.interop.broker import broker
from tests.interop.kit import unique
from tests.soak import soak_only

from rota.client.config import ClientConfig
from rota.client.network.cluster import Cluster


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a `bootstrap` runs on both brokers, in the gate on Rota only if its module has KAFKA_IN_SOAK_ONLY."""
    if "bootstrap" in metafunc.fixturenames:
        is_soak = getattr(metafunc.module, "KAFKA_IN_SOAK_ONLY", False)
        kafka = pytest.param("kafka", marks=[pytest.mark.peer, *([soak_only] if is_soak else [])])
        given = ["given"] if os.environ.get("ROTA_BOOTSTRAP") else ["rota", kafka]
        metafunc.parametrize("bootstrap", given, indirect=True, scope="session")


@pytest.fixture(scope="session")
def rota(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a Rota (or of what ROTA_BOOTSTRAP names), for tests of what Kafka cannot show."""
    with broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> str:
    """HOST:PORT of the broker under test."""
    if request.param == "kafka":
        address = os.environ.get("ROTA_PEER")
        if not address:
            pytest.skip("no Apache Kafka runs beside: ROTA_PEER is not set")
        return address
    address = request.getfixturevalue("rota")
    assert isinstance(address, str)
    return address


@pytest.fixture
async def cluster(bootstrap: str) -> AsyncIterator[Cluster]:
    """A started Cluster."""
    cluster = Cluster(ClientConfig(bootstrap_servers=bootstrap))
    await cluster.start()
    yield cluster
    await cluster.close()


@pytest.fixture
async def proxy(bootstrap: str) -> AsyncIterator[FaultProxy]:
    """The fault proxy in front of the broker under test."""
    async with FaultProxy(bootstrap) as proxy:
        yield proxy


@pytest.fixture
async def rota_proxy(rota: str) -> AsyncIterator[FaultProxy]:
    """The fault proxy in front of Rota, for faults that the proxy makes by itself: they need no second broker."""
    async with FaultProxy(rota) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def full(bootstrap: str) -> str:
    """A topic with records (filled.py) on the broker under test."""
    return filled(bootstrap)


@pytest.fixture(scope="module")
def rota_full(rota: str) -> str:
    """The same on Rota."""
    return filled(rota)


@pytest.fixture
def group() -> str:
    return unique("group")


@pytest.fixture
def topic() -> str:
    """A name that nobody else uses; nothing is created."""
    return unique("topic")
