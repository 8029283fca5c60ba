"""The image of each of three brokers over a real ZooKeeper: what one of them changes, all of them have."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
from tests.zookeeper import zookeeper
from tools.zookeeper import ZooKeeperServer

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.image_updater import ImageUpdater
from rota.coordinator.metadata.registration import Registration, claim_controller, register
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.metadata.zookeeper import ZooKeeperStore

__all__ = ["zookeeper"]  # a fixture

pytestmark = pytest.mark.java
CHROOTS = itertools.count(1)


class Broker:
    """The store's session and the image of one broker."""

    def __init__(self, broker_id: int, store: ZooKeeperStore) -> None:
        self.broker_id, self.store, self.updater = broker_id, store, ImageUpdater()
        self.topics = Topics(store, broker_id=broker_id, fresh_uuid=self._uuid, watch=self.updater.changed)
        self._ids = itertools.count(1)

    def _uuid(self) -> bytes:
        return bytes([self.broker_id, *next(self._ids).to_bytes(15, "big")])

    async def register(self) -> None:
        await register(self.store, self.broker_id, Registration([Endpoint("A", "h", 9092)]), wall_ms=0)

    async def create(self, name: str, partitions: int) -> None:
        assert isinstance(await self.topics.create(name, partitions), Topic)

    async def catch_up(self) -> None:
        """S5: watches of earlier changes come before the answer of a read. Nothing here waits for a time."""
        await self.store.exists("/")
        await self.updater.wait_until_applied()

    @property
    def image(self) -> tuple[object, ...]:
        topics = sorted(self.topics, key=lambda topic: topic.name)
        versions = [state.version for topic in topics for state in topic.partitions]
        return topics, versions, dict(self.topics.brokers), self.topics.controller_id


@pytest.fixture
async def brokers(zookeeper: ZooKeeperServer) -> AsyncIterator[list[Broker]]:
    address = f"{zookeeper.address}/images-{next(CHROOTS)}"
    three = [Broker(broker_id, await ZooKeeperStore(address).open()) for broker_id in (1, 2, 3)]
    for broker in three:
        await broker.updater.follow(broker.topics)
    yield three
    for broker in three:
        await broker.updater.close()
        await broker.store.close()


async def test_what_a_broker_changes_every_broker_has_after_one_read(brokers: list[Broker]) -> None:
    """IM1: registrations, the controller, topics, partitions, configs, leader epochs, deletions; by each of them."""
    for broker in brokers:
        await broker.register()
        await same(brokers)
    await claim_controller(brokers[1].store, 2, wall_ms=0)
    await same(brokers)
    assert [broker.topics.controller_id for broker in brokers] == [2, 2, 2]
    for broker in brokers:
        name = f"t{broker.broker_id}"
        await broker.create(name, 40)
        await same(brokers)
        assert all(len(each.topics.get(name).partitions) == 40 for each in brokers)  # type: ignore[union-attr]
        await broker.topics.add_partitions(name, 60)
        await same(brokers)
        await broker.topics.alter_config(name, {"retention.ms": "1"})
        await same(brokers)
        await broker.topics.bump_leader_epochs()
        await same(brokers)
    for broker, name in zip(brokers, ("t2", "t3", "t1"), strict=True):
        await broker.topics.delete(name)
        await same(brokers)
    await brokers[2].store.delete("/brokers/ids/3")
    await same(brokers)
    assert [sorted(broker.topics.brokers) for broker in brokers] == [[1, 2]] * 3


async def test_changes_of_all_brokers_at_one_time_are_on_every_broker(brokers: list[Broker]) -> None:
    """IM1: many watches fire during one read."""
    for broker in brokers:
        await broker.register()
    await same(brokers)
    for number in range(5):
        for broker in brokers:
            await broker.create(f"{number}-of-{broker.broker_id}", 7)
            await broker.topics.bump_leader_epochs()
    await same(brokers)
    assert len(brokers[0].topics.names()) == 15


async def same(brokers: list[Broker]) -> None:
    for broker in brokers:
        await broker.catch_up()
    assert [broker.image for broker in brokers[1:]] == [brokers[0].image] * 2
