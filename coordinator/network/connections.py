"""All connections of one broker: their number, their idle time, and the memory that they share.

Laws
    A connection above a limit is closed at once with a logged reason; the open connections are not affected.
    One periodic check finds idle and stalled connections: a connection has no timer of its own.
    N14 Clients cannot shut brokers out: above the number of connections one between brokers, where these have a
        listener of their own, is served, and one of another listener is closed (KIP-402).
    N9  After an abort no connection is open: one that was being accepted meanwhile is closed, and never served.
    N5  Replies that peers do not read never exceed the memory of requests and replies. The connections whose peers have
        read nothing for longest are closed first, with a logged reason; those whose peers read are closed last. TCP
        reports progress in steps of some hundred kilobytes: a peer that needs longer than the stall timeout for one
        step counts as not reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import structlog

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import Endpoint, parse_host_limits
from rota.coordinator.network.call import Route
from rota.coordinator.network.connection import Connection
from rota.coordinator.network.dispatch import ApiHandler, Dispatcher
from rota.coordinator.network.open_files import AcceptedSockets, connections_max, console_files, open_files_limit
from rota.coordinator.network.refused_peers import RefusedPeers
from rota.coordinator.network.request_memory import RequestMemoryPool

SWEEPS_PER_IDLE_TIME = 10
TOO_MANY_NEW = "its address opens connections faster than its connection_creation_rate"
SWEEP_MS_MIN, SWEEP_MS_MAX = 100, 60_000

log = structlog.get_logger("rota.server")


class Configured(Protocol):
    """The node that the APIs receive; the network uses its settings and notes when clients connect."""

    connected_ms: int  # when the last connection was accepted, in elapsed time

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def now_ms(self) -> Callable[[], int]: ...


class Connections:
    """The open connections of one broker. `tick_queue(f)` calls `f` at the end of this turn of the event loop."""

    def __init__(
        self,
        node: Configured,
        routes: Mapping[int, Route],
        tick_queue: Callable[[Callable[[], None]], Any],
        reachable: Callable[[Endpoint], Endpoint] = lambda endpoint: endpoint,
    ) -> None:
        """`reachable` returns the address that clients get for that of a listener; one on every interface: theirs."""
        config = node.config
        self.node, self.tick_queue = node, tick_queue
        dispatcher = Dispatcher(routes)
        self.handler_of: Callable[[int], ApiHandler] = dispatcher.handler_of
        self.api_counters = dispatcher.counters
        self.measures_latency = config.http is not None
        self.measured: Callable[[ApiHandler], ApiHandler] | None = None
        self.delay_ms: Callable[[str], int] | None = None  # of a new connection of a host that is above its rate
        self.refused_count = 0  # connections above a limit
        self.request_memory = RequestMemoryPool(_bytes_max(config))
        self.frame_bytes_max = config.socket_request_max_bytes
        self.write_buffer_bytes_max = config.rota_connection_write_buffer_bytes_max
        self.connection_bytes_max = config.rota_connection_inflight_bytes_max
        self.requests_max = config.queued_max_requests
        endpoints = map(reachable, config.advertises or config.listens)
        self._advertised = {each.listener: each for each in endpoints if not each.is_every_interface}
        self._open: dict[Connection, None] = {}  # in the order in which they were opened
        self._stalled: set[Connection] = set()
        self._stalled_ms_max = config.rota_stalled_reader_timeout_ms
        self._per_host: Counter[str] = Counter()
        self._files_limit = open_files_limit()
        self._console_files = console_files(is_open=config.http is not None, has_tls=config.rota_http_tls)
        self.log_files: Callable[[], int] = lambda: 0  # how many files the logs keep open
        self.accepted_sockets = AcceptedSockets(lambda: self._files_max - len(self._open), self._made_room)
        self._refused_peers = RefusedPeers()
        self._last_id = 0
        self._on_empty: Callable[[], None] | None = None
        self._is_suspended = self._is_aborted = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def opened_count(self) -> int:
        """The number of connections that were accepted since the start."""
        return self._last_id

    @property
    def is_suspended(self) -> bool:
        """Whether requests are queued until `resume`."""
        return self._is_suspended

    def __iter__(self) -> Iterator[Connection]:
        """Iterate over the open connections, the oldest first."""
        return iter(tuple(self._open))

    def suspend(self) -> None:
        """Serve no request of any connection until `resume`; requests are queued, within the limits."""
        self._is_suspended = True
        for connection in self._open:
            connection.suspend()

    def resume(self) -> None:
        """Serve requests again."""
        if self._is_suspended:
            self._is_suspended = False
            for connection in list(self._open):
                connection.resume()

    def measure(self, measured: Callable[[ApiHandler], ApiHandler] | None) -> None:
        """Wrap the handlers of requests from now on; None: no more."""
        if measured is not self.measured:
            self.measured = measured
            for connection in self._open:
                connection.forget_handlers()

    # ---- called by connections

    def connection_opened(self, connection: Connection) -> None:
        """Register a new connection, or close it when there are too many."""
        self._last_id += 1
        connection.id = self._last_id
        self.node.connected_ms = self.node.now_ms()
        self._open[connection] = None
        host = connection.peer[0]
        self._per_host[host] += 1
        if self._is_suspended:
            connection.suspend()
        if self._is_aborted:  # N9: accepted before, and reported by the event loop now
            connection.abort()
        elif self._on_empty is not None:  # accepted while the listeners were being closed
            connection.finish()
        else:
            self._limit(connection, host)

    def _limit(self, connection: Connection, host: str) -> None:
        """Refuse, or hold, a connection above a limit; N14: none makes room for one that is not served anyway."""
        if self._per_host[host] > (allowed := self._per_host_max(host)):
            self._refuse(connection, f"{allowed} connections of {host} are here already")
            return
        delay_ms = self.host_delay_ms(host) if connection.handshake is None else 0
        if (why := self._crowded(connection)) and (delay_ms or not self._made_room(connection.listener)):
            self._refuse(connection, why)
        elif delay_ms:
            self.refused_count += 1
            connection.hold_and_close(delay_ms, TOO_MANY_NEW)

    def _refuse(self, connection: Connection, why: str) -> None:
        self.refused_count += 1
        connection.refuse(why)

    @property
    def _files_max(self) -> int:
        """N13. How many connections the limit on open files allows now."""
        return connections_max(self._files_limit, self._console_files, self.log_files())

    def _crowded(self, connection: Connection) -> str | None:
        """Return why there are too many connections; None when there are not."""
        if len(self._open) > (allowed := self.node.config.max_connections):
            return f"max.connections ({allowed}) are here already"
        handshakes = len(self.accepted_sockets) - (connection.handshake is not None)
        if len(self._open) + handshakes > (allowed := self._files_max):
            return f"the limit on open files allows {allowed} connections: raise `ulimit -n`"
        return None

    def _made_room(self, listener: str) -> bool:
        """N14. For a connection of the listener between brokers close one of another listener.

        One that has requested nothing yet, or nothing since the last sweep, else the oldest.
        """
        others = [each for each in self._open if each.listener != listener and not each.is_closing]
        if listener != self.node.config.inter_broker_listener or not others:
            return False
        closed = min(others, key=lambda each: each.active and bool(each.client_id))
        self._refuse(closed, "there are too many connections, and a broker has to connect")
        return True

    def host_delay_ms(self, host: str) -> int:
        """Count a new connection of a host; return 0, or for how many ms it is held before it is closed."""
        return 0 if self.delay_ms is None else self.delay_ms(host)

    def _per_host_max(self, host: str) -> int:
        """Return the limit in force: it may change while the broker runs."""
        overrides = self.node.config.max_connections_per_ip_overrides
        own = parse_host_limits(overrides).get(host) if overrides else None
        return self.node.config.max_connections_per_ip if own is None else own

    def connection_closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)
        self._stalled.discard(connection)
        host = connection.peer[0]
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        if not self._open and self._on_empty is not None:
            self._on_empty()

    def protocol_error(self, connection: Connection, why: str) -> None:
        """N7. Log that a connection is closed because its peer violated the protocol or a limit."""
        line = self._refused_peers.count(connection.peer[0], why)
        if line is not None:
            log.warning("connection closed", peer=_shown(connection), reason=why, **line)

    def internal_error(self, connection: Connection, why: Exception) -> None:
        """Log an unexpected exception of an API, which is a bug of the broker."""
        log.error("request failed", peer=_shown(connection), exc_info=why)

    def address_for(self, connection: Connection) -> tuple[str, int]:
        """EP1. Return the address of this broker for this client: the advertised one, else the one that it has used."""
        advertised, (host, port) = self._advertised.get(connection.listener), connection.local
        return (host, port) if advertised is None else (advertised.host, advertised.port or port)

    # ---- peers that do not read

    def reader_stalled(self, connection: Connection) -> None:
        """The socket of this peer takes no more."""
        connection.stalled_since_ms = None  # the next check sets it
        self._stalled.add(connection)

    def reader_resumed(self, connection: Connection) -> None:
        """The socket of this peer takes more again."""
        self._stalled.discard(connection)

    def limit_unsent(self, newest: Connection) -> None:
        """N5. Close stalled connections until the held bytes fit, but not `newest`, which was just written to."""
        memory = self.request_memory
        for connection in self._stalled_longest_first() if memory.is_exceeded else ():
            if memory.held_bytes > memory.bytes_max and connection is not newest:
                connection.close_stalled("it does not read, and the memory for replies is used up")

    def look_for_stalled(self, now_ms: int) -> None:
        """Update which peers read. If Fetches wait for memory, close those that read nothing for the stall timeout."""
        for connection in list(self._stalled):
            if connection.has_taken_more() or connection.stalled_since_ms is None:
                connection.stalled_since_ms = now_ms
        for connection in self._stalled_longest_first():
            since_ms = connection.stalled_since_ms
            if not self.request_memory.has_waiting_replies or since_ms is None:
                return
            if now_ms - since_ms >= self._stalled_ms_max:
                connection.close_stalled(f"it has read nothing for {now_ms - since_ms} ms, and others wait for memory")

    def _stalled_longest_first(self) -> list[Connection]:
        return sorted(self._stalled, key=_stall_order)

    # ---- called by the broker

    def sweep(self, now_ms: int, idle_ms_max: int) -> int:
        """Close connections that received nothing for `idle_ms_max`; return how many."""
        idle = [peer for peer in self._open if now_ms - peer.idle_since(now_ms) >= idle_ms_max]
        for connection in idle:
            log.info("idle connection closed", peer=_shown(connection), idle_ms_max=idle_ms_max)
            connection.abort()
        return len(idle)

    def finish(self, on_empty: Callable[[], None]) -> None:
        """Serve no new requests; call `on_empty` when the last connection is closed."""
        self._on_empty = on_empty
        for connection in list(self._open):
            connection.finish()
        if not self._open:
            on_empty()

    def abort(self) -> int:
        """Close all connections at once, and those that are still being accepted; return how many there were."""
        self._is_aborted = True
        left = list(self._open)
        for connection in left:
            connection.abort()
        return len(left)


def sweep_interval_ms(idle_ms_max: int) -> int:
    """Return the interval between two sweeps for idle connections."""
    return min(max(idle_ms_max // SWEEPS_PER_IDLE_TIME, SWEEP_MS_MIN), SWEEP_MS_MAX)


def _stall_order(connection: Connection) -> tuple[float, int]:
    """Sort key: the connections that have read nothing for longest first, then those with most unread bytes."""
    since_ms = connection.stalled_since_ms
    return (float("inf") if since_ms is None else since_ms, -connection.unsent_bytes)


def _bytes_max(config: BrokerConfig) -> int:
    return config.queued_max_request_bytes if config.queued_max_request_bytes > 0 else config.rota_inflight_bytes_max


def _shown(connection: Connection) -> str:
    return "{}:{}".format(*connection.peer)
