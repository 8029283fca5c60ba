from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.metadata.image_pair import ImagePair

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata import image_updater
from rota.coordinator.metadata.changes import Change
from rota.coordinator.metadata.image_updater import ImageUpdater
from rota.coordinator.metadata.registration import Registration, claim_controller, register
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import EventType, Stat, StoreFailed, Watch, WatchEvent
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.metadata.tree_session import TreeSession


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


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"endpoints": 5}', b'{"endpoints": [{}]}'])
async def test_a_registration_that_cannot_be_read_is_left_out(pair: Pair, data: bytes) -> None:
    await pair.store.create("/brokers/ids/7", data)
    await pair.store.create("/brokers/ids/seven", data)
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


STATE = "/brokers/topics/before/partitions/1/state"


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/brokers/topics/before", b"{"),
        ("/brokers/topics/before", b"[" * 100_000),
        ("/brokers/topics/before", b'{"partitions": {}}'),
        ("/brokers/topics/before", b'{"topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": {"1": [1]}}'),
        ("/brokers/topics/before", b'{"topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": {"0": []}}'),
        ("/brokers/topics/before", b'{"topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": {"0": ["a"]}}'),
        (STATE, b""),
        (STATE, b'{"leader": 1}'),
        (STATE, b'{"leader": 1, "isr": 1, "leader_epoch": 0, "controller_epoch": 0}'),
        ("/controller", b'"me"'),
    ],
)
async def test_what_another_program_wrote_is_left_out_until_it_can_be_read(
    pair: Pair, path: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IM2, T12."""
    monkeypatch.setattr(image_updater, "RETRY_SECONDS", 0.0)
    await claim_controller(pair.store, 1, wall_ms=0)
    await pair.updater.wait_until_applied()
    whole, (good, _) = pair.image.get("before"), await pair.store.get(path)
    await pair.store.set(path, data)
    await pair.writer.create("other")
    pair.updater.session_began()
    for _ in range(50):
        await asyncio.sleep(0)
    assert pair.image.get("before") == whole
    assert "other" in pair.image
    await pair.store.set(path, good)
    await pair.writer.bump_leader_epochs()
    await pair.same()
    assert pair.image.controller_id == 1


@pytest.mark.parametrize("path", [STATE, "/config/topics/before"])
async def test_a_topic_that_has_lost_a_node_is_not_deleted(
    pair: Pair, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T12."""
    monkeypatch.setattr(image_updater, "RETRY_SECONDS", 0.0)
    whole, (data, _) = pair.image.get("before"), await pair.store.get(path)
    await pair.store.delete(path)
    for _ in range(50):
        await asyncio.sleep(0)
    assert pair.image.get("before") == whole
    events = list[WatchEvent]()
    another = Topics(pair.store, broker_id=3, fresh_uuid=lambda: bytes(16), watch=events.append)
    with pytest.raises(StoreFailed, match=path):
        await another.load()
    await another.refresh_all(keeps_unreadable=True)
    await pair.store.create(path, data)
    assert WatchEvent(path, EventType.CREATED) in events
    await another.load()
    await pair.same()


async def test_who_listens_with_a_mistake_does_not_stop_the_image(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """IM2."""
    monkeypatch.setattr(image_updater, "RETRY_SECONDS", 0.0)
    raised, mistakes = list[Change](), list[BaseException]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: mistakes.append(context["exception"]))

    def fail_once(change: Change) -> None:
        if not raised:
            raised.append(change)
            raise LookupError("planted")

    pair.image.on_change(fail_once)
    with capture_logs() as lines:
        await pair.writer.bump_leader_epochs()
        await pair.same()
    assert raised
    assert [line["reason"] for line in lines if line["log_level"] == "warning"] == ["a mistake: LookupError('planted')"]
    assert [type(mistake) for mistake in mistakes] == [LookupError]


async def test_a_part_of_the_tree_that_is_missing_is_read_when_it_is_there_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IM2. No watch is left on it."""
    monkeypatch.setattr(image_updater, "RETRY_SECONDS", 0.0)
    await pair.store.delete("/brokers/ids")
    for _ in range(10):
        await asyncio.sleep(0)
    await pair.store.create("/brokers/ids")
    await register(pair.store, 1, Registration([Endpoint("A", "h", 1)]), wall_ms=0)
    await pair.updater.wait_until_applied()
    assert list(pair.image.brokers) == [1]


async def test_a_new_session_reads_the_rest_when_a_topic_cannot_be_read() -> None:
    """T12."""
    tree, updater = SharedTree(), ImageUpdater()
    store, other = TreeSession(tree), TreeSession(tree)
    image = Topics(store, broker_id=2, fresh_uuid=lambda: bytes(16), watch=updater.changed)
    writer = Topics(other, broker_id=1, fresh_uuid=lambda: bytes(16))
    await writer.load()
    whole = await writer.create("before")
    await updater.follow(image)
    await store.expire()
    await other.set("/brokers/topics/before", b"{")
    await register(other, 1, Registration([Endpoint("A", "h", 1)]), wall_ms=0)
    updater.session_began()
    await updater.wait_until_applied()
    assert (image.get("before"), list(image.brokers)) == (whole, [1])
    await updater.close()
    await tree.close()


async def test_after_the_end_nothing_is_read(pair: Pair) -> None:
    """IM3."""
    await pair.updater.close()
    await pair.writer.create("late")
    pair.updater.session_began()
    await pair.updater.wait_until_applied()
    assert pair.image.names() == ["before"]
