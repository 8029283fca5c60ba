"""The metadata stores that pass the store's contract: each test of it runs over all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.store_worlds import ServedWorld, StoreWorld, TreeWorld, ZooKeeperWorld
from tests.zookeeper import zookeeper

from rota.coordinator.metadata.store import Store

__all__ = ["zookeeper"]  # a fixture, for the tests of this folder


@pytest.fixture(params=["memory", "journal", "socket", "zookeeper"])
async def store_world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreWorld]:
    world: StoreWorld
    if request.param == "zookeeper":
        world = ZooKeeperWorld(request.getfixturevalue("zookeeper"))
    elif request.param == "socket":
        world = ServedWorld()
    else:
        world = TreeWorld(tmp_path / "metadata" if request.param == "journal" else None)
    yield world
    await world.close()


@pytest.fixture
async def store(store_world: StoreWorld) -> Store:
    return await store_world.open()
