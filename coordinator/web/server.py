"""The HTTP server: a listening socket on the broker's own loop, with bounded connections.

uvicorn's h11 protocol reads and writes HTTP; this file limits how many peers there are and how long they may be silent.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Final

import structlog
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.network.listener import open_sockets
from rota.coordinator.web.app import App
from rota.coordinator.web.site import Site, is_loopback

log = structlog.get_logger("rota.http")

CONNECTIONS_MAX: Final = 128
HEADER_BYTES_MAX: Final = 16 * 1024
KEEP_ALIVE_SECONDS: Final = 30
IDLE_CHECK_SECONDS: Final = 10.0  # a peer that sends no whole request and reads nothing for two such periods is closed
STOP_SECONDS_MAX: Final = 2.0
HANDSHAKE_SECONDS_MAX: Final = 10.0
BACKLOG: Final = 64
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
            transport.close()
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
        self.address = Endpoint("HTTP", "", 0)
        self._servers: list[asyncio.Server] = []
        self._state = ServerState()

    async def start(self, endpoint: Endpoint) -> None:
        """Bind and serve; `address` has the real port then. Raises CannotListen."""
        sockets = open_sockets(endpoint)
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
        tls = self._tls_context()
        self._servers = [await self._serve(config, bound, tls) for bound in sockets]
        self.site.loop_watch.start()
        self.address = Endpoint(endpoint.listener, endpoint.host, sockets[0].getsockname()[1])
        if not is_loopback(endpoint.host) and not self.site.node.config.rota_http_login:
            log.warning("The console is reachable from other machines, and has no login", listener=str(self.address))

    def _tls_context(self) -> ssl.SSLContext | None:
        """Return the context of the listener, which looks for new certificates at each handshake; None without TLS.

        Raises ConfigRefused.
        """
        config = self.site.node.config
        if not config.rota_http_tls:
            return None
        from rota.coordinator.security.tls import ListenerTls

        tls = ListenerTls(config.http_security)

        def began(connection: Any, _: str | None, context: ssl.SSLContext) -> None:
            tls.refresh(config.http_security)
            connection.context = tls.context

        first = tls.context
        first.sni_callback = began
        return first

    async def _serve(self, config: Config, bound: socket.socket, tls: ssl.SSLContext | None) -> asyncio.Server:
        loop = asyncio.get_running_loop()

        def connected() -> LimitedProtocol:
            return LimitedProtocol(config=config, server_state=self._state, app_state={}, _loop=loop)

        handshake_seconds = None if tls is None else HANDSHAKE_SECONDS_MAX
        return await loop.create_server(
            connected, sock=bound, backlog=BACKLOG, ssl=tls, ssl_handshake_timeout=handshake_seconds
        )

    async def stop(self) -> None:
        """Stop accepting; end the event streams; close the remaining connections after STOP_SECONDS_MAX."""
        self.site.loop_watch.stop()
        self.app.stop()
        for server in self._servers:
            server.close()
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
