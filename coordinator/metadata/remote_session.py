"""A session with a store in another process, as its client keeps it: state, watches, and waiting for a connection."""

from __future__ import annotations

import asyncio

from rota.coordinator.metadata.store import EventType, SessionListener, SessionState, StoreFailed
from rota.coordinator.metadata.watches import Watches


class ConnectionLost(Exception):
    """The connection was lost before the answer came."""


class RemoteSession:
    """Law S10. `server` is for messages. Use it in one event loop.

    The first connection may take `connection_timeout_ms`, by default the session timeout.
    """

    def __init__(self, server: str, session_timeout_ms: int, connection_timeout_ms: int | None = None) -> None:
        self.watches = Watches()
        self.session_id = 0  # before the first connection
        self.sessions_ended = 0
        self.is_closed = False
        self._server, self._timeout_ms = server, session_timeout_ms
        self._first_timeout_ms = session_timeout_ms if connection_timeout_ms is None else connection_timeout_ms
        self._listeners: list[SessionListener] = []
        self._is_connected = False
        self._suspended_at = 0.0
        self._changed: asyncio.Future[None] | None = None  # of those who wait

    def begin(self) -> None:
        """The client starts to connect."""
        self._suspended_at = asyncio.get_running_loop().time()

    def on_session(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    def event(self, event_type: EventType, path: str) -> None:
        """Fire the watches on an event of the store."""
        for watch, event in self.watches.take(path, event_type):
            try:
                watch(event)
            except Exception as error:  # noqa: BLE001  # a watch that raises must not stop the others
                asyncio.get_running_loop().call_exception_handler({"message": "a watch raised", "exception": error})

    def state_changed(self, state: SessionState, session_id: int) -> None:
        """Set the state and call the listeners, except for the first connection."""
        if self.is_closed:
            return
        is_first = self.session_id == 0
        self._is_connected = state is SessionState.CONNECTED
        match state:
            case SessionState.CONNECTED:
                self.session_id = session_id
            case SessionState.SUSPENDED:
                self._suspended_at = asyncio.get_running_loop().time()
            case SessionState.EXPIRED:
                self.sessions_ended += 1
                self.watches.clear()
        if not is_first:
            for listener in list(self._listeners):
                listener(state)
        self._notify()

    def close(self) -> None:
        """Let every call raise StoreFailed from now on, also those that wait for a connection."""
        self.is_closed = True
        self._notify()

    async def until_connected(self) -> None:
        """Raises StoreFailed when the session has ended, or when this lasts longer than a session, or the first
        connection, may.
        """
        loop, sessions_ended = asyncio.get_running_loop(), self.sessions_ended
        while not self._is_connected and not self.is_closed and sessions_ended == self.sessions_ended:
            timeout_ms = self._timeout_ms if self.session_id else self._first_timeout_ms
            left_s = self._suspended_at + timeout_ms / 1000 - loop.time()
            if left_s <= 0:
                raise StoreFailed(f"no connection to {self._server} for {timeout_ms} ms")
            if self._changed is None:
                self._changed = loop.create_future()
            await asyncio.wait({self._changed}, timeout=left_s)
        if self.is_closed:
            raise StoreFailed("the store is closed")
        if sessions_ended != self.sessions_ended:
            raise StoreFailed("the session has expired")

    def _notify(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set_result(None)
