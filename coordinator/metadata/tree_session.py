"""One session with a tree in this process: the `Store` of an embedded broker, or of a broker in a simulated cluster.

`suspend`, `resume`, `expire`, `hold_events` and `lose_next_commit` stand for the network to the store.
The session then behaves as one with ZooKeeper does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rota.coordinator.metadata.journal import FRAME_BYTES_MAX
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import (
    ANY_VERSION,
    Create,
    Delete,
    Op,
    OutcomeUnknown,
    SessionListener,
    SessionState,
    Set,
    Stat,
    StoreFailed,
    Watch,
    WatchEvent,
)
from rota.coordinator.metadata.tree import Fact, NodeDataChanged, Tree


class TreeSession:
    """See `Store` for the promises of its methods."""

    commit_bytes_max = FRAME_BYTES_MAX // 2  # JSON may double what it has to escape

    def __init__(self, shared: SharedTree) -> None:
        self._shared = shared
        self._listeners: list[SessionListener] = []
        self._closed = False
        self._connected: asyncio.Event | None = None  # while it is suspended
        self._held_events: list[tuple[Watch, WatchEvent]] | None = None
        self._lost: list[bool] = []
        self._id = shared.open_session(self._deliver)

    @property
    def session_id(self) -> int:
        return self._id

    def on_session(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        tree = await self._tree()
        stat = tree.stat(path)
        if watch is not None:
            tree.sessions[self._id].watch_node(path, watch)
        return tree.nodes[path].data, stat

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat]]:
        return [await self.get(path, watch) for path in paths]

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        tree = await self._tree()
        if watch is not None:
            tree.sessions[self._id].watch_node(path, watch)
        return tree.stat(path) if path in tree.nodes else None

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        tree = await self._tree()
        names = sorted(tree.node(path).children)
        if watch is not None:
            tree.sessions[self._id].watch_children(path, watch)
        return names

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        (created,) = await self.apply([Create(path, data, ephemeral, sequential)])
        return created.path

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        (changed,) = await self.apply([Set(path, data, version)])
        assert isinstance(changed, NodeDataChanged)
        return changed.version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.apply([Delete(path, version)])

    async def commit(self, ops: Sequence[Op]) -> None:
        await self.apply(ops)

    @property
    def last_change(self) -> int:
        return self._shared.tree.last_change

    async def close(self) -> None:
        """End the session. Closing twice is allowed; no listener is called."""
        if not self._closed:
            self._closed = True
            await self._shared.end_session(self._id)

    # ---- faults, for tests and simulations

    def suspend(self) -> None:
        """Lose the connection: calls wait, and no watch fires."""
        if self._connected is None:
            self._connected = asyncio.Event()
            self.hold_events()
            self._notify(SessionState.SUSPENDED)

    def resume(self) -> None:
        """Connect again: the same session goes on, or a new one begins when `expire` has ended it meanwhile."""
        connected, self._connected = self._connected, None
        if self._closed:
            return
        if not self._shared.is_open(self._id):
            self._begin_again()
        elif connected is not None:
            self._notify(SessionState.CONNECTED)
            self.release_events()
        if connected is not None:
            connected.set()

    async def expire(self) -> None:
        """End the session in the store. A suspended client learns of it when it resumes, a connected one at once."""
        if self._closed:
            return
        await self._shared.end_session(self._id)
        if self._connected is None:
            self._begin_again()

    def hold_events(self) -> None:
        """Delay watches that fire from now on: to this session's next read or change, or to `release_events`."""
        if self._held_events is None:
            self._held_events = []

    def release_events(self) -> None:
        """Call the watches that were delayed. Later ones are called at once again."""
        self._call_held()
        self._held_events = None

    def lose_next_commit(self, *, applied: bool) -> None:
        """Let the next change raise OutcomeUnknown, after or without being applied."""
        self._lost.append(applied)

    # ---- inside

    def _deliver(self, watch: Watch, event: WatchEvent) -> None:
        if self._held_events is None:
            watch(event)
        else:
            self._held_events.append((watch, event))

    def _call_held(self) -> None:
        while self._held_events:
            watch, event = self._held_events.pop(0)
            watch(event)

    def _begin_again(self) -> None:
        self._held_events = None
        self._notify(SessionState.EXPIRED)
        self._id = self._shared.open_session(self._deliver)
        self._notify(SessionState.CONNECTED)

    def _notify(self, state: SessionState) -> None:
        for listener in list(self._listeners):
            listener(state)

    async def _tree(self) -> Tree:
        """The tree as a read may see it: S5, S10."""
        await self._until_connected()
        self._call_held()
        return self._shared.tree

    async def apply(self, ops: Sequence[Op]) -> list[Fact]:
        """As `commit`; return what it changed, in the order of the operations."""
        await self._until_connected()
        if not self._lost or self._lost[0]:
            facts = await self._shared.commit(ops, self._id)
            self._call_held()
        if self._lost:
            self._lost.pop(0)
            raise OutcomeUnknown("the connection was lost before the answer came")
        return facts

    async def _until_connected(self) -> None:
        session = self._id
        if self._connected is not None:
            await self._connected.wait()
        if self._closed or session != self._id or not self._shared.is_open(session):
            raise StoreFailed("the store is closed" if self._closed else "the session has expired")
