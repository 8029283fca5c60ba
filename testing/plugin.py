"""The pytest plugin: fixtures `rota_broker`, `rota_topic` and `rota_cluster`. A run that uses none loads no broker.

    rota_broker     a broker in memory for the whole session; its faults end with each test, and it runs again if killed
    rota_topic      the name of a new topic on it; @pytest.mark.rota_topic(partitions=3, configs={...})
    rota_cluster    a function: rota_cluster(3) is a cluster until the test ends

Settings: `rota_properties` (lines NAME=VALUE) and `rota_own_process` (true: brokers get processes of their own).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rota.testing.brokers import RunningBroker, RunningCluster

TOPIC_CHARS_MAX = 200
_numbers = count(1)
_session_broker: pytest.StashKey[RunningBroker] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the settings."""
    parser.addini("rota_properties", "properties of the brokers of the fixtures, NAME=VALUE", type="linelist")
    parser.addini("rota_own_process", "run the brokers of the fixtures in processes of their own", "bool", False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "rota_topic(partitions=1, configs=None): the topic that rota_topic creates")


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """End the faults that a test left behind, and start the broker that it killed or stopped."""
    broker = item.config.stash.get(_session_broker, None)
    if broker is not None:
        broker.faults.clear()
        if not all(each["running"] for each in broker.info()["brokers"]):
            broker.restart()


@pytest.fixture(scope="session")
def rota_broker(pytestconfig: pytest.Config) -> Iterator[RunningBroker]:
    """A broker for all tests: `rota_broker.bootstrap_servers`, `.faults`, `.advance(days=7)`, `.group("g")`."""
    from rota.testing.brokers import running_broker

    own_process = bool(pytestconfig.getini("rota_own_process"))
    with running_broker(_properties(pytestconfig), own_process=own_process) as broker:
        pytestconfig.stash[_session_broker] = broker
        yield broker
        del pytestconfig.stash[_session_broker]


@pytest.fixture
def rota_topic(rota_broker: RunningBroker, request: pytest.FixtureRequest) -> str:
    """The name of a topic that no other test uses, created with one partition or as the marker says."""
    name = f"{re.sub('[^a-zA-Z0-9_-]', '-', request.node.name)[:TOPIC_CHARS_MAX]}-{next(_numbers)}"
    marker = request.node.get_closest_marker("rota_topic")
    rota_broker.create_topic(name, *(marker.args if marker else ()), **(marker.kwargs if marker else {}))
    return name


@pytest.fixture
def rota_cluster(pytestconfig: pytest.Config) -> Iterator[Callable[..., RunningCluster]]:
    """A function that starts a cluster: `rota_cluster(3)`, with properties as the second argument."""
    from rota.testing.brokers import running_cluster

    own_process = bool(pytestconfig.getini("rota_own_process"))
    with ExitStack() as clusters:

        def start(brokers: int = 3, properties: Mapping[str, str] | None = None) -> RunningCluster:
            own = {**_properties(pytestconfig), **(properties or {})}
            return clusters.enter_context(running_cluster(brokers, own, own_process=own_process))

        yield start


def _properties(config: pytest.Config) -> dict[str, str]:
    lines = config.getini("rota_properties")
    return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
