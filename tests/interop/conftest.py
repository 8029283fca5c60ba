"""Fixtures of the interop tests: a broker for each test process, members that are closed after each test."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.interop.broker import broker
from tests.interop.clients import CLIENTS
from tests.interop.kit import unique
from tests.interop.members import Member, Settings

Join = Callable[..., Member]

# kafka-python leaves the sockets of connections that it gave up to the garbage collector
SOCKETS = "ignore:Exception ignored in. <(socket|ssl.SSLSocket):pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/interop/" in str(item.path):
            item.add_marker("interop")
            item.add_marker(pytest.mark.filterwarnings(SOCKETS))


@pytest.fixture(autouse=True)
def litter_is_picked_up_here() -> Iterator[None]:
    """So that a socket which a client left lying is found in the test that is told to overlook it, and in no other."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of the broker under test."""
    with broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    """librdkafka's admin client."""
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def group() -> str:
    return unique("group")


@pytest.fixture
def join(bootstrap: str) -> Iterator[Join]:
    """`join(client, group=…, topics=…)` starts a member; what still lives in the end is closed."""
    members: list[Member] = []

    def start(client: str, **settings: Any) -> Member:
        member = CLIENTS[client](bootstrap, Settings(**settings))
        members.append(member)
        return member

    yield start
    for member in members:
        member.stop()
    for member in members:
        member.close()
