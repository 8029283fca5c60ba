"""The metadata stores that pass the store's contract: each test of it runs over all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.store_worlds import StoreWorld, TreeWorld

from rota.coordinator.metadata.store import Store


@pytest.fixture(params=["memory", "journal"])
async def store_world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreWorld]:
    world = TreeWorld(tmp_path / "metadata" if request.param == "journal" else None)
    yield world
    await world.close()


@pytest.fixture
async def store(store_world: StoreWorld) -> Store:
    return await store_world.open()
