"""The pytest plugin: fixtures `rota_broker`, `rota_topic` and `rota_cluster`. A run that uses none loads no broker.

    rota_broker     a broker in memory for the whole session; its faults end with each test, and it runs again if killed
    rota_topic      the name of a new topic on it; @pytest.mark.rota_topic(partitions=3, configs={...})
    rota_cluster    a function: rota_cluster(3) is a cluster until the test ends

Settings: `rota_properties` (lines NAME=VALUE), `rota_own_process` (true: brokers get processes of their own) and
`rota_seed` (draws which requests the faults with a probability apply to; 0).

Law
    KT3 Faults end with their test, before its fixtures do; its fixtures end, whatever becomes of the broker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Any

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
    parser.addini("rota_seed", "draws which requests the faults with a probability apply to", default="0")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "rota_topic(partitions=1, configs=None): the topic that rota_topic creates")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """End the faults that a test left behind, and start the broker that it killed or stopped."""
    try:
        _reset(item.config.stash.get(_session_broker, None))
    finally:
        yield


def _reset(broker: RunningBroker | None) -> None:
    if broker is not None:
        broker.faults.clear()
        if not all(each["running"] for each in broker.info()["brokers"]):
            broker.restart()


@pytest.fixture(scope="session")
def rota_broker(pytestconfig: pytest.Config) -> Iterator[RunningBroker]:
    """A broker for all tests: `rota_broker.bootstrap_servers`, `.faults`, `.advance(days=7)`, `.group("g")`."""
    from rota.testing.brokers import running_broker

    with running_broker(_properties(pytestconfig), **_options(pytestconfig)) as broker:
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

    with ExitStack() as clusters:

        def start(brokers: int = 3, properties: Mapping[str, str] | None = None) -> RunningCluster:
            own = {**_properties(pytestconfig), **(properties or {})}
            return clusters.enter_context(running_cluster(brokers, own, **_options(pytestconfig)))

        yield start


def seed_of(text: str) -> int:
    """Return the number of the setting `rota_seed`. Raises UsageError for a text that is no whole number."""
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"rota_seed is {text!r}; it is a whole number") from None


def _options(config: pytest.Config) -> dict[str, Any]:
    return {"own_process": bool(config.getini("rota_own_process")), "seed": seed_of(config.getini("rota_seed"))}


def _properties(config: pytest.Config) -> dict[str, str]:
    lines = config.getini("rota_properties")
    return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
