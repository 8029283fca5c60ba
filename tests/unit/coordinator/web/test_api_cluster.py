"""`/api/cluster` of a live broker."""

from __future__ import annotations

from tests.chaos.requests import create_topic
from tests.unit.coordinator.web.conftest import World


async def test_the_cluster_is_shown(world: World) -> None:
    await create_topic(world.kafka, "t", 3)
    shown = await world.read("/api/cluster")
    (broker,) = shown["brokers"]
    assert (shown["topics"], shown["partitions"], shown["is_ready"], shown["is_read_only"]) == (1, 3, True, False)
    assert (broker["leaders"], broker["replicas"], broker["is_controller"], broker["answers"]) == (3, 3, True, True)
