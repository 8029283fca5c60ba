"""One broker for the tests of the kit, and a new topic for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from rota.testing import RunningBroker, running_broker

_numbers = count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture
def topic(broker: RunningBroker) -> Iterator[str]:
    name = f"topic-{next(_numbers)}"
    broker.create_topic(name)
    yield name
    broker.faults.clear()
