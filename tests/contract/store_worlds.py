"""The metadata stores behind one interface for their contract: how sessions are opened, cut off and ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import SessionState, Store, WatchEvent
from rota.coordinator.metadata.tree_session import TreeSession

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

    async def close(self) -> None: ...


class Heard:
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

    async def close(self) -> None:
        await self._embedded.close()
