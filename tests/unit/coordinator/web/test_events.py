"""Server-sent events: what changed, bounded and coalesced."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from tests.chaos.requests import commit, create_topic
from tests.unit.coordinator.web.conftest import World, closed

from rota.coordinator.web import events
from rota.coordinator.web.broker_requests import ApiError
from rota.coordinator.web.events import Events
from rota.protocol.messages.find_coordinator import FindCoordinatorRequest


async def changed(stream: AsyncIterator[str]) -> set[str]:
    """The names of the next event."""
    async with asyncio.timeout(20):
        async for text in stream:
            if text.startswith("event: changed\n"):
                return set(json.loads(text.partition("data: ")[2]))
    raise AssertionError("the stream has ended")


async def test_an_event_names_the_groups_that_changed(world: World) -> None:
    source = Events(world.broker.http.site)
    stream = source.read(source.open())
    await create_topic(world.kafka, "t", 1)
    assert "cluster" in await changed(stream)
    await world.kafka.send_request(FindCoordinatorRequest(key="g"), 2)
    await world.kafka.send_request(commit("g", 0, 0), 7)
    names: set[str] = set()
    while "groups" not in names:
        names |= await changed(stream)
    assert "group:g" in names
    source.stop()
    assert [text async for text in stream] == []


async def test_changes_between_two_reads_are_one_event(world: World) -> None:
    source = Events(world.broker.http.site)
    stream = source.open()
    stream.add({"groups", "group:a"})
    stream.add({"groups", "group:b"})
    assert await changed(source.read(stream)) == {"groups", "group:a", "group:b"}
    source.close(stream)


async def test_streams_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STREAMS_MAX", 1)
    source = Events(world.broker.http.site)
    stream = source.open()
    with pytest.raises(ApiError):
        source.open()
    source.close(stream)
    source.close(source.open())


async def test_many_groups_are_not_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "NAMES_MAX", 1)
    source = Events(world.broker.http.site)
    await create_topic(world.kafka, "t", 1)
    await world.kafka.send_request(FindCoordinatorRequest(key="g"), 2)
    for group in ("a", "b"):
        await world.kafka.send_request(commit(group, 0, 0), 7)
    assert await source.changes() == {"groups"}
    assert await source.changes() == set()


async def test_reading_many_groups_does_not_block_the_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_GROUPS", 1)
    source = Events(world.broker.http.site)
    await create_topic(world.kafka, "t", 1)
    await world.kafka.send_request(FindCoordinatorRequest(key="g"), 2)
    for group in ("a", "b", "c"):
        await world.kafka.send_request(commit(group, 0, 0), 7)
    turns = 0
    look = asyncio.ensure_future(source.changes())
    while not look.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 3
    assert await look == {"groups", "group:a", "group:b", "group:c"}


async def test_a_browser_that_leaves_frees_its_stream(world: World) -> None:
    streams = world.broker.http._server.app.events._streams  # type: ignore[union-attr]
    reader, writer = await asyncio.open_connection(world.http.host, world.http.port)
    writer.write(b"GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await reader.readuntil(b"retry: 2000\n\n")
    assert len(streams) == 1
    await closed(writer)
    async with asyncio.timeout(20):
        while streams:
            await asyncio.sleep(0)


async def test_a_broker_that_stops_ends_the_streams(world: World) -> None:
    reader, writer = await asyncio.open_connection(world.http.host, world.http.port)
    writer.write(b"GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await reader.readuntil(b"retry: 2000\n\n")
    await world.broker.http.stop()
    async with asyncio.timeout(20):
        assert (await reader.read()).endswith(b"0\r\n\r\n")
    await closed(writer)
