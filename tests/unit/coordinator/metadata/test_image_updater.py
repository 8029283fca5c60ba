from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.unit.coordinator.metadata.image_pair import ImagePair

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.image_updater import ImageUpdater
from rota.coordinator.metadata.registration import Registration, claim_controller, register
from rota.coordinator.metadata.store import Stat, Watch
from rota.coordinator.metadata.topics import Topics


class Pair(ImagePair):
    """A broker that changes the store, and another one whose image follows it."""

    async def same(self) -> None:
        await self.updater.wait_until_applied()
        assert {topic.name: topic for topic in self.image} == {topic.name: topic for topic in self.writer}


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    await pair.writer.load()
    await pair.writer.create("before", 2)
    await pair.updater.follow(pair.image)
    yield pair
    await pair.updater.close()
    await pair.store.close()


async def test_every_change_of_another_broker_arrives(pair: Pair) -> None:
    await pair.same()
    await pair.writer.create("t", 3, configs={"a": "b"})
    await pair.same()
    await pair.writer.add_partitions("t", 5)
    await pair.same()
    await pair.writer.alter_config("t", {"c": "d"})
    await pair.same()
    assert await pair.writer.change_isr("t", 4, 0, {1})
    await pair.writer.bump_leader_epoch("t", 2)
    await pair.writer.bump_leader_epochs()
    await pair.same()
    await pair.writer.delete("t")
    await pair.same()
    assert pair.image.names() == ["before"]


async def test_a_topic_that_was_replaced_by_another_of_its_name_is_replaced(pair: Pair) -> None:
    for _ in range(3):
        await pair.writer.delete("before")
        await pair.writer.create("before", 1)
        await asyncio.sleep(0)
    await pair.same()


async def test_changes_during_a_read_are_read_again(pair: Pair) -> None:
    for partitions in range(3, 20):
        await pair.writer.add_partitions("before", partitions)
        await pair.writer.bump_leader_epochs()
        await asyncio.sleep(0)
    await pair.same()


async def test_the_image_follows_registration_reregistration_and_removal(pair: Pair) -> None:
    assert dict(pair.image.brokers) == {}
    await register(pair.store, 1, Registration([Endpoint("A", "h", 1)]), wall_ms=0)
    await pair.updater.wait_until_applied()
    first = pair.image.brokers[1]
    await pair.store.delete("/brokers/ids/1")
    await register(pair.store, 1, Registration([Endpoint("A", "h", 2)]), wall_ms=0)
    await pair.updater.wait_until_applied()
    assert pair.image.brokers[1].epoch > first.epoch
    assert pair.image.brokers[1].endpoints == (Endpoint("A", "h", 2),)
    await pair.store.delete("/brokers/ids/1")
    await pair.updater.wait_until_applied()
    assert dict(pair.image.brokers) == {}


async def test_the_controller_changes(pair: Pair) -> None:
    for broker in (1, 2):
        assert pair.image.controller_id is None
        await claim_controller(pair.store, broker, wall_ms=0)
        await pair.updater.wait_until_applied()
        assert pair.image.controller_id == broker
        await pair.store.delete("/controller")
        await pair.updater.wait_until_applied()


async def test_a_registration_that_is_no_json_is_left_out(pair: Pair) -> None:
    await pair.store.create("/brokers/ids/7", b"{")
    await register(pair.store, 1, Registration([Endpoint("A", "h", 1)]), wall_ms=0)
    await pair.updater.wait_until_applied()
    assert list(pair.image.brokers) == [1]


async def test_a_new_session_reads_everything_again(pair: Pair) -> None:
    image = Topics(pair.store, broker_id=3, fresh_uuid=lambda: bytes(16), watch=lambda event: None)
    updater = ImageUpdater()
    await updater.follow(image)
    await pair.writer.create("unseen")
    await pair.writer.bump_leader_epochs()
    assert "unseen" not in image
    updater.session_began()
    await updater.wait_until_applied()
    assert {topic.name: topic for topic in image} == {topic.name: topic for topic in pair.writer}
    await updater.close()


async def test_a_watch_that_fires_while_its_node_is_read_makes_one_more_read(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IM1. The answer to the first read, which is of an older state, arrives after the second change."""
    get, second_change = pair.store.get, asyncio.Event()

    async def get_late(path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        answer = await get(path, watch)
        if watch is not None and path.endswith("/state"):  # the image reads it
            await second_change.wait()
        return answer

    monkeypatch.setattr(pair.store, "get", get_late)
    await pair.writer.bump_leader_epochs()
    for _ in range(10):
        await asyncio.sleep(0)
    await pair.writer.bump_leader_epochs()
    second_change.set()
    await pair.same()
    topic = pair.image.get("before")
    assert topic is not None
    assert [state.leader_epoch for state in topic.partitions if state.leader == 1] == [2, 2]
