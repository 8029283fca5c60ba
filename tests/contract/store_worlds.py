"""The metadata stores behind one interface for their contract: how sessions are opened, cut off and ended."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from pathlib import Path
from typing import Any, Protocol

from kazoo.client import KazooClient
from tools.zookeeper import ZooKeeperServer

from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.socket_store import SocketStore
from rota.coordinator.metadata.store import SessionState, Store, WatchEvent
from rota.coordinator.metadata.store_server import StoreServer
from rota.coordinator.metadata.tree_session import TreeSession
from rota.coordinator.metadata.zookeeper import ZooKeeperStore

SOON_S = 10.0  # how long a test waits for what should take milliseconds


class StoreWorld(Protocol):
    """One tree, and its clients."""

    async def open(self) -> Store:
        """A client with a session of its own."""

    async def suspend(self, store: Store) -> None:
        """Cut its connection. Returns when the client knows."""

    async def resume(self, store: Store) -> None:
        """Let it connect again. Returns when it has."""

    async def expire(self, store: Store) -> None:
        """Let the tree end its session, whose client is connected or suspended."""

    async def lose_answers(self, store: Store) -> None:
        """Let it send, and lose what it is answered."""

    async def reconnect(self, store: Store) -> None:
        """Cut and mend the connection whose answers were lost."""

    async def close(self) -> None: ...


class Callbacks:
    """What a session's watches and listeners are called with, in order."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []
        self.states: list[SessionState] = []
        self._changed = asyncio.Event()

    def watch(self, event: WatchEvent) -> None:
        self.events.append(event)
        self._changed.set()

    def listener(self, state: SessionState) -> None:
        self.states.append(state)
        self._changed.set()

    async def event(self, *events: WatchEvent) -> None:
        """Wait until these and no others have been heard."""
        await self._until(lambda: len(self.events) >= len(events))
        assert self.events == [*events]

    async def state(self, state: SessionState) -> None:
        """Wait until the last state is this one."""
        await self._until(lambda: bool(self.states) and self.states[-1] is state)

    async def _until(self, condition: object) -> None:
        assert callable(condition)
        async with asyncio.timeout(SOON_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class Line:
    """A proxy in front of a server, which may be cut."""

    def __init__(self, port: int) -> None:
        self._port, self._is_cut, self._is_mute = port, False, False
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._accepted: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        """Returns HOST:PORT."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    def cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self._is_cut = self._is_mute = False

    def mute(self) -> None:
        """Lose what the server sends."""
        self._is_mute = True

    def inject(self, data: bytes) -> None:
        """Send what the server did not."""
        for writer in self._clients:
            writer.write(data)

    async def close(self) -> None:
        assert self._server is not None
        self.cut()
        self._server.close()
        await self._server.wait_closed()
        if self._accepted:
            await asyncio.wait(self._accepted)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._accepted.add(task)
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._port)
        both = {writer, to_writer}
        self._writers |= both
        self._clients.add(writer)
        await asyncio.gather(self._copy(reader, to_writer), self._copy(to_reader, writer))
        self._writers -= both
        self._clients.discard(writer)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if not (self._is_mute and writer in self._clients):
                    writer.write(data)
                    await writer.drain()
        writer.close()


class RemoteWorld:
    """Sessions with a server, each through a line that may be cut."""

    def __init__(self) -> None:
        self.lines: dict[Store, Line] = {}

    async def suspend(self, store: Store) -> None:
        callbacks = Callbacks()
        store.on_session(callbacks.listener)
        self.lines[store].cut()
        await callbacks.state(SessionState.SUSPENDED)

    async def resume(self, store: Store) -> None:
        callbacks = Callbacks()
        store.on_session(callbacks.listener)
        self.lines[store].mend()
        await callbacks.state(SessionState.CONNECTED)

    async def lose_answers(self, store: Store) -> None:
        self.lines[store].mute()

    async def reconnect(self, store: Store) -> None:
        await self.suspend(store)
        await self.resume(store)

    async def close(self) -> None:
        for store, line in self.lines.items():
            await store.close()
            await line.close()


class ZooKeeperWorld(RemoteWorld):
    """A real ZooKeeper, in a chroot of its own."""

    def __init__(self, server: ZooKeeperServer) -> None:
        super().__init__()
        self._server = server
        self.root = f"/{uuid.uuid4().hex}/rota"

    async def open(self, *, session_timeout_ms: int = 10_000, **options: Any) -> Store:
        line = Line(self._server.port)
        store = ZooKeeperStore(await line.open() + self.root, session_timeout_ms=session_timeout_ms, **options)
        self.lines[store] = line
        await store.open()
        return store

    async def expire(self, store: Store) -> None:
        """Whoever knows a session's password can end it, as its owner can."""
        assert isinstance(store, ZooKeeperStore)
        assert store._connection is not None
        client = store._connection._client
        session = client._session_id, client._session_passwd
        await asyncio.to_thread(end_session, self._server.address, session)


class ServedWorld(RemoteWorld):
    """An embedded store that is served on a socket."""

    def __init__(self) -> None:
        super().__init__()
        self._embedded = EmbeddedStore()
        self.server = StoreServer(self._embedded)
        self._is_started = False

    async def open(self) -> Store:
        if not self._is_started:
            self._is_started = True
            await self.server.start("127.0.0.1:0")
        line = Line(self.server.port)
        store = SocketStore(await line.open(), session_timeout_ms=10_000)
        self.lines[store] = line
        await store.open()
        return store

    async def expire(self, store: Store) -> None:
        await self.server.end_session(store.session_id)

    async def close(self) -> None:
        await super().close()
        await self.server.stop()
        await self._embedded.close()


def end_session(address: str, session: tuple[int, bytes]) -> None:
    client = KazooClient(address, client_id=session)
    client.start()
    client.stop()
    client.close()


class TreeWorld:
    """Sessions of an embedded store."""

    def __init__(self, journal: Path | None) -> None:
        self._embedded = EmbeddedStore(journal)

    async def open(self) -> Store:
        return self._embedded.session()

    async def suspend(self, store: Store) -> None:
        assert isinstance(store, TreeSession)
        store.suspend()

    async def resume(self, store: Store) -> None:
        assert isinstance(store, TreeSession)
        store.resume()

    async def expire(self, store: Store) -> None:
        assert isinstance(store, TreeSession)
        await store.expire()

    async def lose_answers(self, store: Store) -> None:
        assert isinstance(store, TreeSession)
        store.lose_next_commit(applied=True)

    async def reconnect(self, store: Store) -> None: ...

    async def close(self) -> None:
        await self._embedded.close()
