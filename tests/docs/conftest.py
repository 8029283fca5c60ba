"""The broker that the programs of a page talk to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rota.testing import running_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """The address of a broker that the tests of a page share."""
    with running_broker() as running:
        yield running.bootstrap_servers
