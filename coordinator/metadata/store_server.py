"""The embedded store, served to the broker processes of one host on a socket (store_protocol.py).

A session outlives its connection by its timeout, for a client that connects again. The process that serves the store
ends all sessions with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections import deque
from typing import Any, Final

from rota.coordinator.metadata import store_protocol as protocol
from rota.coordinator.metadata.eager_tasks import start
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.store import StoreError, StoreFailed, Watch, WatchEvent
from rota.coordinator.metadata.store_protocol import MalformedFrame, frame
from rota.coordinator.metadata.tree import Fact, NodeCreated, NodeDataChanged
from rota.coordinator.metadata.tree_session import TreeSession

TOKEN_BYTES: Final = 16


class _Session:
    """A client's session: its connection, if any, and the events that the client has not confirmed."""

    def __init__(self, tree: TreeSession, timeout_s: float) -> None:
        self.tree, self.timeout_s = tree, timeout_s
        self.token = secrets.token_hex(TOKEN_BYTES)
        self.writer: asyncio.StreamWriter | None = None
        self.end: asyncio.TimerHandle | None = None  # when no connection follows
        self._events: deque[tuple[int, bytes]] = deque()
        self._events_sent = 0

    def watch(self, event: WatchEvent) -> None:
        self._events_sent += 1
        data = frame(["event", self._events_sent, event.what.value, event.path])
        self._events.append((self._events_sent, data))
        self.send(data)

    def seen(self, events: int) -> None:
        while self._events and self._events[0][0] <= events:
            self._events.popleft()

    def connect(self, writer: asyncio.StreamWriter) -> None:
        """Answer on this connection from now on, beginning with the events that the client has not seen."""
        if self.end is not None:
            self.end.cancel()
        if self.writer is not None:
            self.writer.transport.abort()
        self.writer, self.end = writer, None
        self.send(frame(["session", self.tree.session_id, self.token]))
        for _, data in self._events:
            self.send(data)

    def send(self, data: bytes) -> None:
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(data)


class StoreServer:
    """`await start(address)`; `stop` leaves the store open."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self._sessions: dict[int, _Session] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, address: str) -> None:
        """Listen on a path of the file system (only this user may connect), or on HOST:PORT. Raises OSError."""
        if "/" in address:
            self._server = await asyncio.start_unix_server(self._accept, sock=_private_socket(address))
        else:
            host, _, port = address.rpartition(":")
            self._server = await asyncio.start_server(self._accept, host, int(port))

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """End all connections and sessions."""
        assert self._server is not None
        self._server.close()
        for session_id in list(self._sessions):
            await self.end_session(session_id)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def end_session(self, session_id: int) -> None:
        """Delete its ephemeral nodes and cut its connection. Its client learns that it has expired when it returns."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        if session.end is not None:
            session.end.cancel()
        with contextlib.suppress(StoreFailed):  # the next opening of the store deletes them
            await session.tree.close()
        if session.writer is not None:
            session.writer.transport.abort()

    # ---- connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        session: _Session | None = None
        try:
            while session is None:
                session = self._open(await _read(reader), writer)
            while True:
                self._answer(session, await _read(reader))
        except (asyncio.IncompleteReadError, OSError, MalformedFrame, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            if session is not None and session.writer is writer:
                self._disconnected(session)

    def _open(self, request: list[Any], writer: asyncio.StreamWriter) -> _Session | None:
        """Begin or continue a session; None when it has expired, after which the client begins a new one."""
        match request:
            case ["open", int(session_id), str(token), int(events), int(timeout_ms)]:
                session = self._sessions.get(session_id)
            case _:
                raise MalformedFrame(f"{request!r} opens no session")
        if session_id == 0:
            tree = self._store.session()
            session = self._sessions[tree.session_id] = _Session(tree, timeout_ms / 1000)
        elif session is None or not secrets.compare_digest(session.token, token):
            writer.write(frame(["expired"]))
            return None
        session.seen(events)
        session.connect(writer)
        return session

    def _disconnected(self, session: _Session) -> None:
        session.writer = None
        if session.tree.session_id in self._sessions:
            session.end = asyncio.get_running_loop().call_later(session.timeout_s, self._expire, session)

    def _expire(self, session: _Session) -> None:
        start(self.end_session(session.tree.session_id))

    # ---- requests

    def _answer(self, session: _Session, request: list[Any]) -> None:
        """Answer a request: reads at once, a change after the journal; other requests are served meanwhile."""
        match request:
            case [int(number), int(events), str(kind), *rest]:
                session.seen(events)
                start(self._perform(session, number, kind, rest)).then(session.send)
            case _:
                raise MalformedFrame(f"{request!r} is no request")

    async def _perform(self, session: _Session, number: int, kind: str, rest: list[Any]) -> bytes:
        try:
            answer: list[object] = ["ok", await self._result(session, kind, rest)]
        except StoreError as error:
            answer = ["refused", type(error).__name__, error.path, error.why]
        except StoreFailed as error:
            answer = ["failed", str(error)]
        return frame([number, session.tree.last_change, *answer])

    async def _result(self, session: _Session, kind: str, rest: list[Any]) -> object:
        tree = session.tree
        match kind, rest:
            case "get", [str(path), bool(is_watched)]:
                data, stat = await tree.get(path, _watch(session, is_watched))
                return [protocol.text(data), protocol.stat_row(stat)]
            case "exists", [str(path), bool(is_watched)]:
                found = await tree.exists(path, _watch(session, is_watched))
                return None if found is None else protocol.stat_row(found)
            case "children", [str(path), bool(is_watched)]:
                return await tree.children(path, _watch(session, is_watched))
            case "commit", [list(ops)]:
                return [_shown(fact) for fact in await tree.apply([protocol.read_op(op) for op in ops])]
            case "close", []:
                self._sessions.pop(tree.session_id, None)
                await tree.close()
                return None
        raise MalformedFrame(f"{kind} is no request")


def _private_socket(path: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    umask = os.umask(0o177)
    try:
        listening.bind(path)
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(umask)
    return listening


def _watch(session: _Session, is_watched: bool) -> Watch | None:
    return session.watch if is_watched else None


def _shown(fact: Fact) -> object:
    """What a change returns: the path of a new node, the version of one that was set."""
    match fact:
        case NodeCreated(path):
            return path
        case NodeDataChanged(_, _, version):
            return version
    return None


async def _read(reader: asyncio.StreamReader) -> list[Any]:
    head = await reader.readexactly(protocol.HEAD.size)
    return protocol.message(await reader.readexactly(protocol.payload_bytes(head)))
