"""kazoo's client for an event loop: what ZooKeeper sends is handled in the loop, in the order in which it was sent.

kazoo runs a thread for the connection. By default two more threads call back, one for answers and one for watches, and
the order between the two is lost; law S5 of the store needs it. Here both are called in the connection's thread, which
only appends to an inbox that the loop empties.

kazoo 2.11 forgets all watches when a connection is lost. `SetWatches`, sent before anything else on the next one,
makes ZooKeeper fire those of what changed meanwhile and set the others again (law S11).

Names with an underscore are kazoo's own; pyproject.toml has the versions for which the contract suite passes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, SessionExpiredError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import Exists
from kazoo.protocol.states import Callback, KazooState, KeeperState, WatchedEvent
from kazoo.protocol.states import EventType as KazooEventType
from kazoo.retry import KazooRetry

from rota.coordinator.metadata.silence import Silence
from rota.coordinator.metadata.store import EventType, SessionState, StoreFailed
from rota.coordinator.metadata.zookeeper_requests import MultiRead, set_watches
from rota.transport.errors import SettingRefused

REQUESTS_IN_FLIGHT_MAX: Final = 128  # each has a byte in a socket of kazoo's, on which the loop would block beyond ~250
WAKE_UPS_BYTES: Final = 4_096  # more than there can be in that socket
RECONNECT_DELAY_S: Final = 0.05  # doubled up to the maximum
RECONNECT_DELAY_S_MAX: Final = 1.0
ATTEMPTS_PER_SESSION: Final = 4  # to connect that get no answer
CONNECT_S_MAX: Final = 2.0  # of a TCP connection: the first packet is sent twice
RESTART_S: Final = 1.0  # after kazoo's thread has ended by itself: authentication failed, or an answer was malformed
EVENT_TYPES: Final = {
    KazooEventType.CREATED: EventType.CREATED,
    KazooEventType.DELETED: EventType.DELETED,
    KazooEventType.CHANGED: EventType.CHANGED,
    KazooEventType.CHILD: EventType.CHILD,
}

log = structlog.get_logger("rota.metadata")

Done = Callable[[Any, Exception | None], None]


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Calls every callback at once: a handler that does not run has no threads, and kazoo calls results directly.

    `tls` returns the context of a new connection; None: without TLS. An attempt to connect may take `connect_s_max`.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext] | None, connect_s_max: float) -> None:
        super().__init__()
        self._tls, self._connect_s_max = tls, connect_s_max

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: Any) -> socket.socket:
        connected = socket.create_connection(address, min(timeout, self._connect_s_max, CONNECT_S_MAX))
        if self._tls is None:
            return connected
        try:
            return self._tls().wrap_socket(connected, server_hostname=hostname)
        except SettingRefused as refused:  # files that were changed since the start
            raise OSError(str(refused)) from None
        finally:
            connected.close()  # the TLS socket has its own; without one the handshake has failed

    def select(self, readers: list[Any], writers: list[Any], errors: list[Any], timeout: float | None = None) -> Any:
        """A TLS socket may have decrypted bytes that the socket below shows no more."""
        decrypted = [each for each in readers if isinstance(each, ssl.SSLSocket) and each.pending()]
        return (decrypted, [], []) if decrypted else super().select(readers, writers, errors, timeout)

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)

    def spawn(self, function: Callable[[], object]) -> threading.Thread:
        """Run it in a thread whose exception ends nothing else; kazoo has logged it."""
        thread = threading.Thread(target=_run, args=(function,), daemon=True, name="zookeeper")
        thread.start()
        return thread


def _run(function: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):
        function()


class _Result:
    """What kazoo gives the answer to one request to."""

    __slots__ = ("_answered",)

    def __init__(self, answered: Done) -> None:
        self._answered = answered

    def set(self, value: Any = None) -> None:
        self._answered(value, None)

    def set_exception(self, error: Exception) -> None:
        self._answered(None, error)


class Connection:
    """Sessions with ZooKeeper, one after the other. Use it in the loop that created it.

    `on_state` is called with each state and the session's id, `on_event` with type and path of each event of a watch.
    """

    def __init__(
        self,
        hosts: str,
        *,
        session_timeout_ms: int,
        digest: str | None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        on_state: Callable[[SessionState, int], None],
        on_event: Callable[[EventType, str], None],
    ) -> None:
        self._on_state, self._on_event = on_state, on_event
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[Callable[[], None]] = deque()
        self._is_emptying = False
        self._backlog: deque[tuple[int, Any, Done]] = deque()
        self._in_flight = 0
        self._lock = threading.Lock()
        self._sessions_ended = 0  # known to the thread; the lock makes this and sending a request one step
        self._watched: tuple[list[str], list[str]] | None = None  # nodes and parents, while the connection is lost
        self._absent: set[str] = set()  # of the watched nodes
        self._is_closed = False
        self._silence = Silence(self._leave_server)
        self._silent_server: tuple[str, int] | None = None
        self._client = _client(hosts, session_timeout_ms, digest, tls)
        _try_last(self._client._connection, lambda: self._silent_server)
        self._client.add_listener(self._state_changed)

    def start(self) -> None:
        """Connect in the background, and again whenever the connection is lost."""
        self._client.start_async()

    async def close(self, timeout_s: float) -> None:
        """End the session. After `timeout_s` it returns in any case; the session then ends by its own timeout."""
        self._is_closed = True
        self._silence.close()
        closed = self._loop.create_future()
        thread = threading.Thread(target=self._stop, args=(closed,), daemon=True, name="zookeeper-close")
        thread.start()
        await asyncio.wait({closed}, timeout=timeout_s)

    def _stop(self, closed: asyncio.Future[None]) -> None:
        try:
            self._client.stop()
            self._client.close()
        finally:
            self._post(partial(closed.set_result, None))

    @property
    def last_change(self) -> int:
        return int(self._client.last_zxid)

    def send(self, request: Any, done: Done, *, sessions_ended: int) -> None:
        """Send a request of kazoo's; `done` is called in the loop with its answer or error.

        `sessions_ended` says for which session: StoreFailed is the error when that one has ended meanwhile (S10).
        """
        self._backlog.append((sessions_ended, request, done))
        self._send_backlog()

    def watcher(self, event: WatchedEvent) -> None:
        """The watch that requests carry. Called in kazoo's thread; NONE means that kazoo has forgotten a watch."""
        if event.type != KazooEventType.NONE:
            self._absent.discard(event.path)
            self._post(partial(self._handle_event, EVENT_TYPES[event.type], event.path))

    # ---- in the loop

    def _send_backlog(self) -> None:
        while self._backlog and self._in_flight < REQUESTS_IN_FLIGHT_MAX:
            sessions_ended, request, done = self._backlog.popleft()
            with self._lock:
                has_ended = sessions_ended != self._sessions_ended
                if not has_ended:
                    self._silence.sent()
                    self._in_flight += 1
                    self._client._call(request, _Result(partial(self._answered, request, done)))
            if has_ended:
                done(None, StoreFailed("the session has expired"))

    def _leave_server(self) -> None:
        """Break the connection, as its end would: kazoo connects to the next server, in the same session."""
        with contextlib.suppress(OSError, AttributeError):  # it has ended meanwhile
            connected = self._client._connection._socket
            self._silent_server = connected.getpeername()[:2]
            log.warning("ZooKeeper is silent; trying another server", server="{}:{}".format(*self._silent_server))
            socket.socket.shutdown(connected, socket.SHUT_RDWR)  # that of a TLS socket is not for another thread

    def _handle_state(self, state: SessionState, session_id: int) -> None:
        self._silence.connected(state is SessionState.CONNECTED)
        if state is SessionState.CONNECTED:
            self._silent_server = None
        self._on_state(state, session_id)

    def _handle_event(self, event_type: EventType, path: str) -> None:
        self._silence.received()
        self._on_event(event_type, path)

    def _handle_answer(self, done: Done, value: Any, error: Exception | None) -> None:
        self._silence.ended(is_answered=not isinstance(error, ConnectionLoss | SessionExpiredError))
        self._in_flight -= 1
        done(value, error)
        self._send_backlog()

    def _empty_inbox(self) -> None:
        self._is_emptying = False
        while self._inbox:
            handle = self._inbox.popleft()
            try:
                handle()
            except Exception as error:  # noqa: BLE001  # a watch that raises must not stop the others
                self._loop.call_exception_handler({"message": "a watch or listener raised", "exception": error})

    # ---- in kazoo's thread

    def _post(self, handle: Callable[[], object]) -> None:
        self._inbox.append(handle)  # type: ignore[arg-type]
        if not self._is_emptying:
            self._is_emptying = True
            try:
                self._loop.call_soon_threadsafe(self._empty_inbox)
            except RuntimeError:
                return  # the loop is closed, and so is everything that waited

    def _answered(self, request: Any, done: Done, value: Any, error: Exception | None) -> None:
        if isinstance(request, Exists) and request.watcher is not None and error is None:
            (self._absent.add if value is None else self._absent.discard)(request.path)
        if isinstance(request, MultiRead) and request.on_read is not None and error is None:
            self._watch(request.paths, value, request.on_read, done)
        else:
            self._post(partial(self._handle_answer, done, value, error))

    def _watch(self, paths: Sequence[str], values: list[Any], on_read: Callable[[list[Any]], None], done: Done) -> None:
        """Set watches on nodes that were read. Those of what has changed since fire after `on_read`, before `done`.

        When the connection is lost before they are set, `done` gets the error, and the nodes have to be read again.
        """
        self._post(partial(on_read, values))
        read = {path: value[1] for path, value in zip(paths, values, strict=True) if isinstance(value, tuple)}
        for path in read:
            self._client._data_watchers[path].add(self.watcher)
            self._absent.discard(path)
        last_change = max((stat.mzxid for stat in read.values()), default=0)  # the answer's own may be a later one

        def watched(_: Any, error: Exception | None) -> None:
            self._post(partial(self._handle_answer, done, values if error is None else None, error))

        requests = list(set_watches(last_change, read, set(), ()))
        for request in requests[:-1]:
            self._client._call(request, _Result(lambda value, error: None))  # with an error the last one has one, too
        if requests:
            self._client._call(requests[-1], _Result(watched))
        else:
            watched(None, None)

    def _state_changed(self, state: KazooState) -> None:
        self._count_wake_ups()
        if state == KazooState.CONNECTED:
            self._restore_watches()
            self._post(partial(self._handle_state, SessionState.CONNECTED, self._client.client_id[0]))
        elif state == KazooState.SUSPENDED:
            self._watched = list(self._client._data_watchers), list(self._client._child_watchers)
            self._post(partial(self._handle_state, SessionState.SUSPENDED, 0))
        else:
            self._session_ended()

    def _session_ended(self) -> None:
        with self._lock:
            self._sessions_ended += 1
        self._watched = None
        self._absent.clear()
        self._post(partial(self._handle_state, SessionState.EXPIRED, 0))
        if self._client.client_state != KeeperState.EXPIRED_SESSION:
            self._post(self._restart_later)

    def _restart_later(self) -> None:
        if not self._is_closed:
            self._loop.call_later(RESTART_S, self._restart)

    def _restart(self) -> None:
        if not self._is_closed:
            self.start()

    def _count_wake_ups(self) -> None:
        """kazoo forgets requests that it has not sent, but not their bytes in its socket, which would fill it."""
        connection = self._client._connection
        if connection._read_sock is None:
            return
        with self._lock:
            with contextlib.suppress(BlockingIOError):
                connection._read_sock.recv(WAKE_UPS_BYTES, socket.MSG_DONTWAIT)
            connection._write_sock.send(b"\0" * len(self._client._queue))

    def _restore_watches(self) -> None:
        watched, self._watched = self._watched, None
        if watched is None:
            return
        client, (nodes, parents) = self._client, watched
        for paths, watchers in ((nodes, client._data_watchers), (parents, client._child_watchers)):
            for path in paths:
                watchers[path].add(self.watcher)
        for request in reversed(list(set_watches(client.last_zxid, nodes, self._absent, parents))):
            client._queue.appendleft((request, _Result(lambda value, error: None)))
            client._connection._write_sock.send(b"\0")


def _client(
    hosts: str, session_timeout_ms: int, digest: str | None, tls: Callable[[], ssl.SSLContext] | None
) -> KazooClient:
    connect_s_max = session_timeout_ms / 1000 / ATTEMPTS_PER_SESSION
    handler = _Handler(tls, connect_s_max)
    logger = logging.getLogger("rota.zookeeper")
    logger.setLevel(logging.ERROR)  # the states of the session are reported to `on_state`
    client = KazooClient(
        hosts=hosts,
        timeout=session_timeout_ms / 1000,
        handler=handler,
        auth_data=[] if digest is None else [("digest", digest)],
        connection_retry=KazooRetry(
            max_tries=-1, delay=RECONNECT_DELAY_S, max_delay=RECONNECT_DELAY_S_MAX, sleep_func=handler.sleep_func
        ),
        logger=logger,
    )
    _limit_answers(client._connection, connect_s_max)
    return client


def _limit_answers(connection: Any, seconds_max: float) -> None:
    """S17. A server that starts may accept a connection and never answer; kazoo waits as long as a session lasts."""
    invoke = connection._invoke

    def invoke_in_time(timeout: float, request: Any, xid: int | None = None) -> Any:
        return invoke(min(timeout, seconds_max), request, xid)

    connection._invoke = invoke_in_time


def _try_last(connection: Any, server: Callable[[], tuple[str, int] | None]) -> None:
    """S18. Connect to this server, which was silent, after all others."""
    expand = connection._expand_client_hosts

    def expand_others_first() -> list[tuple[str, str, int]]:
        last = server()
        return sorted(expand(), key=lambda host: host[1:] == last)

    connection._expand_client_hosts = expand_others_first
