"""The listening sockets of one broker, the checks for idle and stalled connections, and the shutdown.

Laws
    No connection is accepted before every address is bound, and none after `stop` is called.
    SC4 The code of TLS and SASL is imported with the first listener that needs it.
    N11 Accepted connections have TCP_NODELAY, whichever event loop runs: a small reply does not wait for the
        acknowledgement of the one before.
    `stop` waits up to `drain_ms` for requests in flight; then it closes the remaining connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rota.coordinator.config.listener_security import ListenerSecurity
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.network.connection import Connection
from rota.coordinator.network.connections import Connections, sweep_interval_ms
from rota.coordinator.network.unauthenticated import UnauthenticatedConnections
from rota.coordinator.scheduling.clock import Clock
from rota.coordinator.scheduling.timers import Timers

if TYPE_CHECKING:
    import ssl

    from rota.coordinator.network.sasl_connection import SaslConnections
    from rota.coordinator.network.tls_server import TlsHandshake, TlsServer
    from rota.coordinator.security.sasl.scram import Lookup
    from rota.coordinator.security.tls import ListenerTls

_SWEEP, _STALLED = ("network", "sweep"), ("network", "stalled")
STALLED_LOOK_MS = 1_000
TURNS_TO_REGISTER = 2  # of the event loop, from `accept` to `connection_made`


class CannotListen(OSError):
    """An address cannot be bound; the message says which and why."""


class Listener:
    """Accepts connections and registers them in `connections`. `timers` and `now_ms` can be replaced in tests."""

    def __init__(
        self,
        connections: Connections,
        timers: Timers,
        now_ms: Callable[[], int],
        find_credential: Lookup | None = None,
        wall_ms: Callable[[], int] | None = None,
    ) -> None:
        self.connections = connections
        self._timers, self._now_ms = timers, now_ms
        self._servers: list[asyncio.Server | TlsServer] = []
        self._config = config = connections.node.config
        self.unauthenticated = UnauthenticatedConnections(
            now_ms,
            lambda: (config.rota_authentication_timeout_ms, config.rota_unauthenticated_connections_max),
        )
        self._find_credential, self._wall_ms = find_credential, wall_ms or Clock().wall_ms
        self._sasl: SaslConnections | None = None
        self._tls: dict[str, ListenerTls] = {}

    async def start(self, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
        """Bind all endpoints, then accept. Return them with the ports that were bound.

        Raises CannotListen, and ConfigRefused for a listener whose TLS or SASL cannot be set up.
        """
        try:
            return await self._start(tuple(endpoints))
        except BaseException:
            self._close_sasl()
            raise

    async def _start(self, endpoints: tuple[Endpoint, ...]) -> list[Endpoint]:
        factories = {endpoint.listener: self._factory(endpoint.listener) for endpoint in endpoints}
        if self._sasl is not None:
            await self._sasl.first_keys()
        loop, bound = asyncio.get_running_loop(), []
        opened: list[tuple[str, socket.socket]] = []
        try:
            for endpoint in endpoints:
                sockets = open_sockets(endpoint)
                opened += [(endpoint.listener, bound_socket) for bound_socket in sockets]
                listen(endpoint, sockets)
                bound.append(Endpoint(endpoint.listener, endpoint.host, sockets[0].getsockname()[1]))
        except OSError:
            for _, bound_socket in opened:
                bound_socket.close()
            raise
        backlog = self._config.socket_listen_backlog_size
        for name, bound_socket in opened:
            accept, tls = factories[name]
            if tls is None:
                self._servers.append(await loop.create_server(accept, sock=bound_socket, backlog=backlog))
            else:
                self._servers.append(self._tls_server(name, tls, accept, bound_socket))
        if self._config.connections_max_idle_ms > 0:
            self._sweep_later()
        self._look_later()
        return bound

    def _factory(self, name: str) -> tuple[Callable[[], Connection], ListenerTls | None]:
        """Return what makes the connections of a listener, and its TLS. Raises ConfigRefused."""
        security = self._config.security.get(name, ListenerSecurity(name))
        accept: Callable[[], Connection] = partial(Connection, self.connections, name)
        if security.has_sasl:
            accept = self._sasl_connections().factory(name)
        if security.has_tls:
            from rota.coordinator.security.tls import ListenerTls

            self._tls[name] = ListenerTls(security)
        return accept, self._tls.get(name)

    def _sasl_connections(self) -> SaslConnections:
        from rota.coordinator.network.sasl_connection import SaslConnections, SaslLimits
        from rota.coordinator.security.sasl.scram import no_users

        if self._sasl is None:
            limits = SaslLimits(self._config, self._timers, self._now_ms, self.unauthenticated)
            find = self._find_credential or no_users
            self._sasl = SaslConnections(self.connections, limits, find, self._wall_ms)
        return self._sasl

    def _close_sasl(self) -> None:
        if self._sasl is not None:
            self._sasl.close()

    def _tls_server(
        self, name: str, tls: ListenerTls, accept: Callable[[], Connection], bound_socket: socket.socket
    ) -> TlsServer:
        from rota.coordinator.network.tls_server import TlsServer

        def context() -> ssl.SSLContext:
            tls.refresh(self._config.security[name])
            return tls.context

        def accept_tls(handshake: TlsHandshake) -> Connection:
            connection = accept()
            connection.handshake = handshake
            if connection.sasl is None:  # with SASL it is the user that has authenticated
                connection.identify = tls.principal_of
            return connection

        owner = self.connections
        server = TlsServer(name, context, accept_tls, self.unauthenticated, owner.host_delay_ms, owner.accepted_sockets)
        server.start(bound_socket, self._config.socket_listen_backlog_size)
        return server

    async def stop(self, drain_ms: int) -> int:
        """Stop accepting, wait for requests in flight, close the other connections; return how many those were."""
        self._timers.cancel(_SWEEP)
        self._timers.cancel(_STALLED)
        await self.stop_accepting()
        for server in self._servers:
            server.close()
        self.unauthenticated.close()
        all_closed = asyncio.Event()
        self.connections.finish(all_closed.set)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(all_closed.wait(), drain_ms / 1000)
        cut_off = self.connections.abort()
        if cut_off:
            await all_closed.wait()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()
        self._close_sasl()
        return cut_off

    async def stop_accepting(self) -> None:
        """Accept no more connections, and register those that the event loop has accepted.

        asyncio loses a connection that it has accepted when its server is closed in the same turn: its socket stays
        open until the garbage collector finds it. uvloop registers a connection in the turn in which it accepts it.
        """
        loop = asyncio.get_running_loop()
        for server in self._servers:
            if isinstance(server, asyncio.Server):
                for listening in server.sockets:
                    loop.remove_reader(listening.fileno())
        for _ in range(TURNS_TO_REGISTER):
            await asyncio.sleep(0)

    def abort(self) -> None:
        """Stop accepting and close every connection at once."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        self._close_sasl()
        self.unauthenticated.close()
        self.connections.abort()

    def _look_later(self) -> None:
        self._timers.at(_STALLED, self._now_ms() + STALLED_LOOK_MS, self._look)

    def _look(self) -> None:
        self.connections.look_for_stalled(self._now_ms())
        self.unauthenticated.look()
        for name, tls in self._tls.items():
            tls.refresh(self._config.security[name])
        self._look_later()

    def _sweep_later(self) -> None:
        wait_ms = sweep_interval_ms(self._config.connections_max_idle_ms)
        self._timers.at(_SWEEP, self._now_ms() + wait_ms, self._sweep)

    def _sweep(self) -> None:
        self.connections.sweep(self._now_ms(), self._config.connections_max_idle_ms)
        self._sweep_later()


def open_sockets(endpoint: Endpoint) -> list[socket.socket]:
    """Return one bound socket for each IP address of the host, all on one port. Raises CannotListen."""
    try:
        found = _resolve(endpoint)
    except socket.gaierror as why:
        raise CannotListen(f"cannot listen on {endpoint}: the host is not known ({why.strerror})") from None
    sockets: list[socket.socket] = []
    port = endpoint.port
    try:
        for family, where in found:
            sockets.append(_bound(family, (where[0], port, *where[2:])))
            port = sockets[0].getsockname()[1]
    except OSError as why:
        for bound_socket in sockets:
            bound_socket.close()
        raise CannotListen(why.errno, f"cannot listen on {endpoint}: {why.strerror}") from None
    return sockets


def listen(endpoint: Endpoint, sockets: Sequence[socket.socket]) -> None:
    """N15. Listen, before the loop gets the sockets: uvloop reports no `listen` that fails. Raises CannotListen."""
    try:
        for bound_socket in sockets:
            bound_socket.listen()
    except OSError as why:
        for bound_socket in sockets:
            bound_socket.close()
        raise CannotListen(why.errno, f"cannot listen on {endpoint}: {why.strerror}") from None


def _resolve(endpoint: Endpoint) -> list[tuple[int, tuple[Any, ...]]]:
    if not endpoint.host:
        return [(socket.AF_INET6, ("::", 0, 0, 0))] if socket.has_dualstack_ipv6() else [(socket.AF_INET, ("", 0))]
    # bytes: for a text Python would load the tables of international names
    host = endpoint.host.encode() if endpoint.host.isascii() else endpoint.host
    found = socket.getaddrinfo(host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((int(family), tuple(where)) for family, _, _, _, where in found))


def _bound(family: int, where: tuple[Any, ...]) -> socket.socket:
    # accepted sockets inherit the protocol, and asyncio sets TCP_NODELAY on no others (N11)
    bound_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if where[0] == "::" else 1)
        bound_socket.bind(where)
    except OSError:
        bound_socket.close()
        raise
    return bound_socket
