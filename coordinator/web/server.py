"""The HTTP server: a listening socket on the broker's own loop, with bounded connections.

uvicorn's h11 protocol reads and writes HTTP; this file limits how many peers there are and how long they may be silent.

Law
    WB27 TLS handshakes are bounded in number and time, as those of the listeners for clients of Kafka.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import structlog
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.network.listener import listen, open_sockets
from rota.coordinator.network.open_files import CONSOLE_CONNECTIONS_MAX
from rota.coordinator.network.unauthenticated import UnauthenticatedConnections
from rota.coordinator.web.app import App
from rota.coordinator.web.site import Site, is_loopback

if TYPE_CHECKING:
    from rota.coordinator.network.tls_server import TlsServer
    from rota.coordinator.security.tls import ListenerTls

log = structlog.get_logger("rota.http")

CONNECTIONS_MAX: Final = CONSOLE_CONNECTIONS_MAX
HEADER_BYTES_MAX: Final = 16 * 1024
KEEP_ALIVE_SECONDS: Final = 30
IDLE_CHECK_SECONDS: Final = 10.0  # a peer that sends no whole request and reads nothing for two such periods is closed
STOP_SECONDS_MAX: Final = 2.0
HANDSHAKES_MAX: Final = CONSOLE_CONNECTIONS_MAX
HANDSHAKE_MS_MAX: Final = 10_000
LOOK_MS: Final = 1_000
BACKLOG: Final = 64
NAME: Final = "HTTP"
_LOOK: Final = ("http", "handshakes")
TOO_MANY: Final = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class LimitedProtocol(H11Protocol):
    """One HTTP connection. It is refused above CONNECTIONS_MAX and closed when its peer neither sends nor reads."""

    _idle_check: asyncio.TimerHandle | None = None
    _last_cycle: object = None
    _unread_bytes = 0  # at the last check

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.write(TOO_MANY)
            transport.close()  # over TLS it waits for the peer
            if len(self.connections) > 2 * CONNECTIONS_MAX:
                transport.abort()
            return
        self._idle_check = self.loop.call_later(IDLE_CHECK_SECONDS, self._close_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._idle_check is not None:
            self._idle_check.cancel()

    def _close_idle(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if self.cycle is self._last_cycle and (self._is_stalled(unread) or self._is_idle()):
            self.transport.abort()  # `close` would wait for the peer to read
            return
        self._last_cycle, self._unread_bytes = self.cycle, unread
        self._idle_check = self.loop.call_later(IDLE_CHECK_SECONDS, self._close_idle)

    def _is_stalled(self, unread: int) -> bool:
        """Return whether no byte of the response was sent since the last check."""
        return unread >= self._unread_bytes > 0

    def _is_idle(self) -> bool:
        is_served = self.cycle is not None and not self.cycle.response_complete
        return not is_served and self.timeout_keep_alive_task is None


class HttpServer:
    """Serves the site on `rota.http.listener`."""

    def __init__(self, site: Site) -> None:
        self.site, self.app = site, App(site)
        self.address = Endpoint(NAME, "", 0)
        self._servers: list[asyncio.Server | TlsServer] = []
        self._state = ServerState()
        self._handshakes = UnauthenticatedConnections(site.node.now_ms, lambda: (HANDSHAKE_MS_MAX, HANDSHAKES_MAX))

    async def start(self, endpoint: Endpoint) -> None:
        """Bind and serve; `address` has the real port then. Raises CannotListen."""
        sockets = open_sockets(endpoint)
        listen(endpoint, sockets)
        config = Config(
            self.app.serve,
            log_config=None,
            log_level="error",
            access_log=False,
            lifespan="off",
            http="h11",
            ws="none",
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        )
        config.load()
        tls = self._tls()
        self._servers = [await self._serve(config, bound, tls) for bound in sockets]
        if tls is not None:
            self._look()
        self.site.loop_watch.start()
        self.address = Endpoint(endpoint.listener, endpoint.host, sockets[0].getsockname()[1])
        if not is_loopback(endpoint.host) and not self.site.node.config.rota_http_login:
            log.warning("The console is reachable from other machines, and has no login", listener=str(self.address))

    def _tls(self) -> ListenerTls | None:
        """Return the TLS of the listener; None without it. Raises ConfigRefused."""
        config = self.site.node.config
        if not config.rota_http_tls:
            return None
        from rota.coordinator.security.tls import ListenerTls

        return ListenerTls(config.http_security)

    async def _serve(self, config: Config, bound: socket.socket, tls: ListenerTls | None) -> asyncio.Server | TlsServer:
        loop = asyncio.get_running_loop()

        def connected(_: object = None) -> LimitedProtocol:
            return LimitedProtocol(config=config, server_state=self._state, app_state={}, _loop=loop)

        if tls is None:
            return await loop.create_server(connected, sock=bound, backlog=BACKLOG)
        return self._serve_tls(connected, bound, tls)

    def _serve_tls(
        self, connected: Callable[[object], LimitedProtocol], bound: socket.socket, tls: ListenerTls
    ) -> TlsServer:
        from rota.coordinator.network.tls_server import TlsServer

        def context() -> ssl.SSLContext:
            tls.refresh(self.site.node.config.http_security)
            return tls.context

        server = TlsServer(NAME, context, connected, self._handshakes)
        server.start(bound, BACKLOG)
        return server

    def _look(self) -> None:
        self._handshakes.look()
        node = self.site.node
        node.timers.at(_LOOK, node.now_ms() + LOOK_MS, self._look)

    async def stop(self) -> None:
        """Stop accepting; end the event streams; close the remaining connections after STOP_SECONDS_MAX."""
        self.site.loop_watch.stop()
        self.app.stop()
        for server in self._servers:
            server.close()
        self.site.node.timers.cancel(_LOOK)
        self._handshakes.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=STOP_SECONDS_MAX)
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        for server in self._servers:
            await server.wait_closed()
