"""The metadata store of a simulated cluster: the real tree, and sessions over a connection that a seed breaks.

As with ZooKeeper, the requests of a session take effect in their order, its answers and watches come back in order, an
answer that is lost leaves the outcome of a change unknown, and a session ends when its connection is broken for
`SESSION_MS`, or at once when it is `expire`d. Its client learns that when it is connected again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tests.simulation.machines_loop import Heap, Resume, Wait

from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.store import (
    Create,
    Op,
    OutcomeUnknown,
    SessionState,
    Stat,
    StoreError,
    StoreFailed,
    Watch,
    WatchEvent,
)
from rota.coordinator.metadata.tree import Tree
from rota.coordinator.metadata.watches import Watches

SESSION_MS: Final = 3_000
DELAYS_MS: Final = (0.2, 3.0)


class StoreServer:
    """The tree. `on_change` is called with each path that was changed."""

    def __init__(self, heap: Heap, on_change: Callable[[str], None]) -> None:
        self.heap, self.tree, self._on_change = heap, Tree(), on_change
        self.clients: dict[int, StoreSession] = {}
        self._last_session = 100
        self.commit(0, [Create(path) for path in znodes.PERSISTENT])

    def open_session(self, client: StoreSession) -> int:
        self._last_session += 1
        self.tree.sessions[self._last_session] = Watches()
        self.clients[self._last_session] = client
        return self._last_session

    def end_session(self, session_id: int) -> None:
        self.tree.sessions.pop(session_id, None)
        if self.clients.pop(session_id, None) is not None:
            self._apply(self.tree.ephemerals(session_id))

    def commit(self, session_id: int, ops: Sequence[Op]) -> None:
        """Raises StoreError."""
        self._apply(self.tree.prepare(ops, owner=session_id))

    def _apply(self, facts: list[Any]) -> None:
        if facts:
            for session_id, watch, event in self.tree.apply(facts):
                self.clients[session_id].fire(watch, event)
            for fact in facts:
                self._on_change(fact.path)


class StoreSession:
    """What one process has of the store: the methods of `Store` that the machines' surroundings use.

    `run` runs a call as an event of the process; `on_session` is called with each state of the session.
    """

    def __init__(
        self, server: StoreServer, run: Callable[[Callable[[], None]], None], on_session: Callable[[SessionState], None]
    ) -> None:
        self._server, self._heap, self._run, self._on_session = server, server.heap, run, on_session
        self.session_id = server.open_session(self)
        self._connection, self.is_connected, self._loses_answer = 0, True, False
        self._there_at = self._back_at = 0.0  # when the last message arrives
        self._held: list[tuple[Watch, WatchEvent]] = []

    # ---- what disturbs it

    def disconnect(self) -> None:
        """Break the connection: some of what was sent still arrives, no answer comes back."""
        if self.is_connected:
            self.is_connected = False
            self._connection += 1
            self._heap.after(SESSION_MS, partial(self._time_out, self._connection))

    def _time_out(self, connection: int) -> None:
        if not self.is_connected and self._connection == connection:
            self.expire()

    def expire(self) -> None:
        """The store ends the session. A connected client is told so soon."""
        session_id = self.session_id
        self._server.end_session(session_id)
        if self.is_connected:
            self._connection += 1
            self._return(lambda: self._begin_session(session_id))

    def reconnect(self) -> None:
        """Fire what was changed meanwhile, or begin a new session."""
        if self.is_connected:
            return
        self.is_connected, session_id = True, self.session_id
        self._connection += 1
        if session_id in self._server.clients:
            held, self._held = self._held, []
            for watch, event in held:
                self.fire(watch, event)
        else:
            self._return(lambda: self._begin_session(session_id))

    def lose_next_answer(self) -> None:
        self._loses_answer = True

    def _begin_session(self, ended: int) -> None:
        if self.session_id == ended:
            self._held.clear()
            self.session_id = self._server.open_session(self)
            self._on_session(SessionState.EXPIRED)

    # ---- requests

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        def read() -> tuple[bytes, Stat]:
            stat = self._server.tree.stat(path)
            self._watch_node(path, watch)
            return self._server.tree.nodes[path].data, stat

        found: tuple[bytes, Stat] = await self._request(read, is_change=False)
        return found

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        def read() -> Stat | None:
            self._watch_node(path, watch)
            return self._server.tree.stat(path) if path in self._server.tree.nodes else None

        found: Stat | None = await self._request(read, is_change=False)
        return found

    async def children(self, path: str, watch: Watch) -> list[str]:
        def read() -> list[str]:
            names = sorted(self._server.tree.node(path).children)
            self._server.tree.sessions[self.session_id].watch_children(path, watch)
            return names

        found: list[str] = await self._request(read, is_change=False)
        return found

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> None:
        await self.commit([Create(path, data, ephemeral)])

    async def commit(self, ops: Sequence[Op]) -> None:
        ops, session_id = list(ops), self.session_id
        await self._request(lambda: self._server.commit(session_id, ops), is_change=True)

    def _watch_node(self, path: str, watch: Watch | None) -> None:
        if watch is not None:
            self._server.tree.sessions[self.session_id].watch_node(path, watch)

    def _request(self, perform: Callable[[], Any], *, is_change: bool) -> Wait:
        return Wait(lambda resume: self._send(perform, is_change, resume))

    def _send(self, perform: Callable[[], Any], is_change: bool, resume: Resume) -> None:
        session_id, connection = self.session_id, self._connection
        failure = OutcomeUnknown("the connection is lost") if is_change else StoreFailed("the connection is lost")
        if not self.is_connected or session_id not in self._server.clients:
            self._heap.after(50, partial(self._run, lambda: resume(None, StoreFailed("no connection"))))
            return

        def arrive() -> None:
            is_broken = self._connection != connection or session_id not in self._server.clients
            if is_broken and (session_id not in self._server.clients or self._heap.random.random() < 0.5):
                self._heap.after(1, partial(self._run, partial(resume, None, failure)))
                return
            value, error = None, None
            try:
                value = perform()
            except StoreError as refused:
                error = refused
            if is_change and self._loses_answer:
                self._loses_answer = False
                self.disconnect()
                self._heap.after(self._heap.random.uniform(1, 400), partial(self._run, self.reconnect))
            self._return(partial(answer, value, error))

        def answer(value: Any, error: BaseException | None) -> None:
            if self._connection == connection:
                resume(value, error)
            else:
                resume(None, failure)

        self._there_at = max(self._there_at, self._heap.now_ms + self._heap.random.uniform(*DELAYS_MS))
        self._heap.after(self._there_at - self._heap.now_ms, arrive)

    def fire(self, watch: Watch, event: WatchEvent) -> None:
        """A watch of this session has fired."""
        if self.is_connected:
            session_id = self.session_id
            self._return(lambda: watch(event) if self.session_id == session_id else None)
        else:
            self._held.append((watch, event))

    def _return(self, call: Callable[[], Any]) -> None:
        """Call it at the client, behind all that was sent back before."""
        self._back_at = max(self._back_at, self._heap.now_ms + self._heap.random.uniform(*DELAYS_MS))
        self._heap.after(self._back_at - self._heap.now_ms, partial(self._run, call))
