"""The metadata store of a broker whose supervisor serves it on a socket (store_server.py)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata import store_protocol as protocol
from rota.coordinator.metadata.remote_session import ConnectionLost, RemoteSession
from rota.coordinator.metadata.store import (
    ANY_VERSION,
    BadNode,
    Create,
    Delete,
    EventType,
    Op,
    OutcomeUnknown,
    SessionListener,
    SessionState,
    Set,
    Stat,
    StoreFailed,
    Watch,
)
from rota.coordinator.metadata.store_protocol import MalformedFrame, frame
from rota.coordinator.metadata.tree import check_path

RECONNECT_S: Final = 0.02
CLOSE_S_MAX: Final = 1.0


class SocketStore:
    """See `Store` for the promises of its methods."""

    commit_bytes_max = protocol.COMMIT_BYTES_MAX

    def __init__(self, address: str, *, session_timeout_ms: int) -> None:
        """`address` is that of `StoreServer.start`. A session ends `session_timeout_ms` after its connection."""
        self.last_change = 0
        self._address, self._timeout_ms = address, session_timeout_ms
        self._session = RemoteSession(f"the metadata store at {address}", session_timeout_ms)
        self._id, self._token, self._events = 0, "", 0  # of the session to go on with
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[asyncio.Future[Any], Callable[[], None] | None]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._running: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect within the session timeout. Raises StoreFailed. Calls no listener."""
        self._session.begin()
        self._running = asyncio.get_running_loop().create_task(self._stay_connected())
        try:
            await self._session.until_connected()
        except BaseException:
            await self.close()
            raise

    @property
    def session_id(self) -> int:
        return self._session.session_id

    def on_session(self, listener: SessionListener) -> None:
        self._session.on_session(listener)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        data, stat = await self._read("get", path, watch, self._session.watches.watch_node)
        return data.encode("latin-1"), Stat(*stat)

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat]]:
        return await eager_tasks.gather(self.get(path, watch) for path in paths)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        stat = await self._read("exists", path, watch, self._session.watches.watch_node)
        return None if stat is None else Stat(*stat)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        names: list[str] = await self._read("children", path, watch, self._session.watches.watch_children)
        return names

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        (created,) = await self._commit([Create(path, data, ephemeral, sequential)])
        return str(created)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        (changed,) = await self._commit([Set(path, data, version)])
        return int(changed)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._commit([Delete(path, version)])

    async def commit(self, ops: Sequence[Op]) -> None:
        await self._commit(ops)

    async def close(self) -> None:
        """End the session. Closing twice is allowed; no listener is called."""
        if self._session.is_closed:
            return
        if self._writer is not None:
            closed = self._send(["close"])
            closed.add_done_callback(lambda done: done.cancelled() or done.exception())  # either way it is closed
            await asyncio.wait({closed}, timeout=CLOSE_S_MAX)
            closed.cancel()
        self._session.close()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    # ---- requests

    async def _read(self, kind: str, path: str, watch: Watch | None, set_watch: Callable[[str, Watch], None]) -> Any:
        """Send a read until it is answered in this session. The watch is set with the answer, before any event."""
        check_path(path)
        sessions_ended = self._session.sessions_ended
        while True:
            await self._connected(sessions_ended)
            answered = (lambda: set_watch(path, watch)) if watch is not None else None
            try:
                return await self._send([kind, path, watch is not None], answered)
            except ConnectionLost:
                continue

    async def _commit(self, ops: Sequence[Op]) -> list[Any]:
        for op in ops:
            check_path(op.path)
        if sum(len(op.data) for op in ops if isinstance(op, Create | Set)) > self.commit_bytes_max:
            raise BadNode(ops[0].path, f"a change of more than {self.commit_bytes_max} bytes")
        await self._connected(self._session.sessions_ended)
        try:
            results: list[Any] = await self._send(["commit", list(map(protocol.op_row, ops))])
        except ConnectionLost as error:
            raise OutcomeUnknown(str(error)) from None
        return results

    async def _connected(self, sessions_ended: int) -> None:
        await self._session.until_connected()
        if sessions_ended != self._session.sessions_ended:
            raise StoreFailed("the session has expired")

    def _send(self, request: list[object], answered: Callable[[], None] | None = None) -> asyncio.Future[Any]:
        assert self._writer is not None
        number, future = next(self._numbers), asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, answered)
        _write(self._writer, frame([number, self._events, *request]))
        return future

    # ---- the connection

    async def _stay_connected(self) -> None:
        while True:
            try:
                await self._serve(*await self._connect())
            except (OSError, asyncio.IncompleteReadError, MalformedFrame):
                pass
            finally:
                self._disconnected()
            await asyncio.sleep(RECONNECT_S)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if "/" in self._address:
            return await asyncio.open_unix_connection(self._address)
        host, _, port = self._address.rpartition(":")
        return await asyncio.open_connection(host, int(port))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Open or continue the session and handle what the server sends, until the connection ends."""
        try:
            _write(writer, self._opening())
            while True:
                head = await reader.readexactly(protocol.HEAD.size)
                self._handle(protocol.message(await reader.readexactly(protocol.payload_bytes(head))), writer)
        finally:
            writer.close()

    def _opening(self) -> bytes:
        return frame(["open", self._id, self._token, self._events, self._timeout_ms])

    def _handle(self, message: list[Any], writer: asyncio.StreamWriter) -> None:
        match message:
            case ["event", int(number), str(event_type), str(path)]:
                self._events = number
                self._session.event(EventType(event_type), path)
            case [int(number), int(last_change), str(kind), *rest]:
                self.last_change = max(self.last_change, last_change)
                self._answered(number, kind, rest)
            case ["session", int(session_id), str(token)]:
                self._writer, self._id, self._token = writer, session_id, token
                self._session.state_changed(SessionState.CONNECTED, session_id)
            case ["expired"]:
                self._id, self._token, self._events = 0, "", 0
                self._session.state_changed(SessionState.EXPIRED, 0)
                _write(writer, self._opening())
            case _:
                raise MalformedFrame(f"{message!r} is no answer")

    def _answered(self, number: int, kind: str, rest: list[Any]) -> None:
        if number not in self._waiting:
            raise MalformedFrame(f"an answer to request {number}, which was not sent")
        future, answered = self._waiting.pop(number)
        if future.done():
            return
        match kind, rest:
            case "ok", [result]:
                if answered is not None:
                    answered()
                future.set_result(result)
            case "refused", [str(name), str(path), str(why)] if name in protocol.REFUSALS:
                future.set_exception(protocol.REFUSALS[name](path, why))
            case _:
                future.set_exception(StoreFailed(str(rest[0]) if rest else kind))

    def _disconnected(self) -> None:
        waiting, self._waiting = self._waiting, {}
        was_connected, self._writer = self._writer is not None, None
        for future, _ in waiting.values():
            if not future.done():
                future.set_exception(ConnectionLost("the connection was lost before the answer came"))
        if was_connected:
            self._session.state_changed(SessionState.SUSPENDED, 0)


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Of a lost connection the reader learns one turn of the event loop later; until then uvloop refuses to write."""
    if not writer.is_closing():
        writer.write(data)
