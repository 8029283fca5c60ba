"""The server of a store; what its sessions promise is in tests/contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.socket_store import SocketStore
from rota.coordinator.metadata.store import EventType, WatchEvent
from rota.coordinator.metadata.store_protocol import frame
from rota.coordinator.metadata.store_server import StoreServer


class Served:
    def __init__(self, address: str, store: EmbeddedStore) -> None:
        self.address, self.store = address, store

    async def client(self, session_timeout_ms: int = 10_000) -> SocketStore:
        client = SocketStore(self.address, session_timeout_ms=session_timeout_ms)
        await client.open()
        return client


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    store = EmbeddedStore(tmp_path / "journal")
    server = StoreServer(store)
    address = str(tmp_path / "socket")
    await server.start(address)
    yield Served(address, store)
    await server.stop()
    await store.close()


async def test_only_this_user_may_connect(served: Served) -> None:
    assert Path(served.address).stat().st_mode & 0o077 == 0


async def test_a_session_ends_its_timeout_after_its_connection(served: Served) -> None:
    """Law S4: a process that died is noticed without a heartbeat."""
    client, disconnected = await served.client(session_timeout_ms=1000), asyncio.Event()
    await client.create("/e", ephemeral=True)
    await served.store.exists("/e", lambda _: disconnected.set())
    assert client._running is not None
    client._running.cancel()
    async with asyncio.timeout(10):
        await disconnected.wait()
    assert await served.store.children("/") == []


async def test_a_session_cannot_be_taken_over_without_its_token(served: Served) -> None:
    client = await served.client()
    await client.create("/e", ephemeral=True)
    reader, writer = await asyncio.open_unix_connection(served.address)
    writer.write(frame(["open", client.session_id, "guessed", 0, 1000]))
    assert (await reader.readexactly(15))[4:] == b'["expired"]'
    writer.close()
    assert await client.children("/") == ["e"]


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        frame(["hello"]),
        frame(["open", "x"]),
        frame(["open", 0, "", 0, 9]) + frame([1]),
    ],
)
async def test_a_connection_that_speaks_another_protocol_is_cut(served: Served, data: bytes) -> None:
    reader, writer = await asyncio.open_unix_connection(served.address)
    writer.write(data)
    async with asyncio.timeout(10):
        while await reader.read(100):
            pass
    writer.close()
    assert await (await served.client()).children("/") == []


async def test_events_of_a_lost_connection_are_sent_again_on_the_next(served: Served) -> None:
    """Law S11."""
    client, events = await served.client(), list[WatchEvent]()
    await client.exists("/a", events.append)
    assert client._writer is not None
    client._writer.transport.abort()
    await served.store.create("/a")
    await client.children("/")
    assert events == [WatchEvent("/a", EventType.CREATED)]
