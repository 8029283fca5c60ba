"""One topic, read from a store that other programs change, too; `test_image_updater` has what an image does with it."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.metadata.image_pair import ImagePair

from rota.coordinator.metadata import topic_reader
from rota.coordinator.metadata.store import EventType, WatchEvent
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.metadata.znodes import UnreadableNode, topic_path

NODES = ["/config/topics/t", "/brokers/topics/t/partitions/0/state", "/brokers/topics/t/partitions/1/state"]


@pytest.fixture
async def pair() -> ImagePair:
    pair = ImagePair()
    await pair.writer.load()
    await pair.writer.create("t", 2)
    return pair


async def read(pair: ImagePair, events: list[WatchEvent]) -> Topic | None:
    return await topic_reader.read(pair.store, "t", pair.image, events.append)


async def test_each_node_that_is_read_is_watched(pair: ImagePair) -> None:
    events = list[WatchEvent]()
    assert await read(pair, events) == pair.writer.get("t")
    for path in (topic_path("t"), *NODES):
        await pair.store.set(path, (await pair.store.get(path))[0])
    assert [event.path for event in events] == [topic_path("t"), *NODES]


@pytest.mark.parametrize("path", NODES)
async def test_a_topic_without_one_of_its_nodes_is_not_deleted(pair: ImagePair, path: str) -> None:
    """T12. The node that is missing is watched."""
    events, (data, _) = list[WatchEvent](), await pair.store.get(path)
    await pair.store.delete(path)
    with pytest.raises(UnreadableNode, match=f"{path} is missing"):
        await read(pair, events)
    await pair.store.create(path, data)
    assert events == [WatchEvent(path, EventType.CREATED)]
    assert await read(pair, events) == pair.writer.get("t")


async def test_a_topic_that_is_deleted_while_it_is_read_does_not_exist(
    pair: ImagePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_many = pair.store.get_many

    async def delete_first(*args: object) -> object:
        await pair.writer.delete("t")
        return await get_many(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(pair.store, "get_many", delete_first)
    assert await read(pair, []) is None
    assert await read(pair, []) is None


@pytest.mark.parametrize("path", [topic_path("t"), *NODES[1:]])
async def test_a_node_that_cannot_be_read_is_named(pair: ImagePair, path: str) -> None:
    """T12."""
    await pair.store.set(path, b"{")
    with pytest.raises(UnreadableNode, match=f"{path} cannot be read"):
        await read(pair, [])
