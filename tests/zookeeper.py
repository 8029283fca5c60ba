"""A real ZooKeeper for tests: one server for each process of pytest, one chroot for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tools.zookeeper import ZooKeeperServer, missing


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A server that no test may stop; one that does starts its own `ZooKeeperServer`."""
    reason = missing()
    if reason is not None:
        pytest.skip(f"no ZooKeeper: {reason}")
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server
