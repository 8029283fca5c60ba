"""`/api/cluster` of a live broker."""

from __future__ import annotations

from sys import float_info

from tests.chaos.requests import create_topic
from tests.unit.coordinator.web.conftest import World

from rota.coordinator.metadata.changes import ConfigKind


async def test_the_cluster_is_shown(world: World) -> None:
    await create_topic(world.kafka, "t", 3)
    shown = await world.read("/api/cluster")
    (broker,) = shown["brokers"]
    assert (shown["topics"], shown["partitions"], shown["is_ready"], shown["is_read_only"]) == (1, 3, True, False)
    assert (broker["leaders"], broker["replicas"], broker["is_controller"], broker["answers"]) == (3, 3, True, True)


async def test_the_quotas_of_clients_are_shown_with_how_often_they_throttled(world: World) -> None:
    configs = world.broker.topics.configs
    await configs.update(ConfigKind.USERS, "alice", lambda _: {"request_percentage": "inf"})
    await configs.update(ConfigKind.CLIENTS, "<default>", lambda _: {"producer_byte_rate": "1024"})
    assert world.broker.node.client_throttle is not None
    world.broker.node.client_throttle.count("producer_byte_rate", 5)
    rows = (await world.read("/api/cluster"))["quotas"]
    assert rows == [
        {"entity": "user alice", "quota": "request_percentage", "value": float_info.max, "throttled": 0},
        {"entity": "client-id (default)", "quota": "producer_byte_rate", "value": 1024.0, "throttled": 1},
    ]
