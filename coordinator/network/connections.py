"""All peers of one broker: who is here, how many there may be, how much of theirs we keep.

Laws
    A connection above a limit is closed at once with a logged reason; those that are here notice nothing.
    One look at a time finds the idle ones: a connection has no timer of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from rota.coordinator.api.node import Node
from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.listeners import host_limits
from rota.coordinator.network.connection import Connection
from rota.coordinator.network.dispatch import ApiHandler, Dispatcher, Route
from rota.coordinator.network.request_memory import RequestMemoryPool

SWEEPS_PER_IDLE_TIME = 10
SWEEP_MS_MIN, SWEEP_MS_MAX = 100, 60_000

log = structlog.get_logger("rota.server")


class Connections:
    """What the connections of one broker share. `soon` has a call made at the end of this turn of the loop."""

    def __init__(
        self, node: Node, routes: Mapping[int, Route], tick_queue: Callable[[Callable[[], None]], Any]
    ) -> None:
        config = node.config
        self.node, self.tick_queue = node, tick_queue
        self.known: Callable[[int], ApiHandler] = Dispatcher(routes).known
        self.request_memory = RequestMemoryPool(_bytes_max(config))
        self.frame_bytes_max = config.socket_request_max_bytes
        self.write_buffer_bytes_max = config.rota_connection_write_buffer_bytes_max
        self.connection_bytes_max = config.rota_connection_inflight_bytes_max
        self.requests_max = config.queued_max_requests
        self._count_max, self._per_host_max = config.max_connections, config.max_connections_per_ip
        self._host_overrides = host_limits(config.max_connections_per_ip_overrides)
        self._advertised = {one.listener: one for one in config.advertises}
        self._here: set[Connection] = set()
        self._per_host: Counter[str] = Counter()
        self._last_id = 0
        self._on_empty: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._here)

    # ---- what a connection tells

    def came(self, connection: Connection) -> None:
        """A peer is here; it may have to go at once."""
        self._last_id += 1
        connection.id = self._last_id
        self._here.add(connection)
        host = connection.peer[0]
        self._per_host[host] += 1
        if self._on_empty is not None:  # it knocked while the door was being closed
            connection.finish()
        elif len(self._here) > self._count_max:
            connection.end(f"max.connections ({self._count_max}) are here already")
        elif self._per_host[host] > (allowed := self._host_overrides.get(host, self._per_host_max)):
            connection.end(f"{allowed} connections of {host} are here already")

    def went(self, connection: Connection) -> None:
        """A peer is gone."""
        self._here.discard(connection)
        host = connection.peer[0]
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        if not self._here and self._on_empty is not None:
            self._on_empty()

    def ended(self, connection: Connection, why: str) -> None:
        """We close a connection."""
        log.warning("connection closed", peer=_shown(connection), reason=why)

    def broken(self, connection: Connection, why: Exception) -> None:
        """One API failed in a way that nobody foresaw."""
        log.error("request failed", peer=_shown(connection), exc_info=why)

    def told_address(self, connection: Connection) -> tuple[str, int]:
        """The address that this client is told to use: the one advertised, or the one that it used."""
        told = self._advertised.get(connection.listener)
        return (told.host, told.port) if told is not None else connection.local

    # ---- what the broker asks

    def sweep(self, now_ms: int, idle_ms_max: int) -> int:
        """Close who has been silent that long; how many they were."""
        idle = [one for one in self._here if now_ms - one.idle_since(now_ms) >= idle_ms_max]
        for connection in idle:
            log.info("idle connection closed", peer=_shown(connection), idle_ms_max=idle_ms_max)
            connection.abort()
        return len(idle)

    def finish(self, on_empty: Callable[[], None]) -> None:
        """Serve nothing new anywhere; `on_empty` is told when the last peer is gone."""
        self._on_empty = on_empty
        for connection in list(self._here):
            connection.finish()
        if not self._here:
            on_empty()

    def abort(self) -> int:
        """Close all at once; how many there still were."""
        left = list(self._here)
        for connection in left:
            connection.abort()
        return len(left)


def sweep_interval_ms(idle_ms_max: int) -> int:
    """How often to look for idle peers."""
    return min(max(idle_ms_max // SWEEPS_PER_IDLE_TIME, SWEEP_MS_MIN), SWEEP_MS_MAX)


def _bytes_max(config: BrokerConfig) -> int:
    return config.queued_max_request_bytes if config.queued_max_request_bytes > 0 else config.rota_inflight_bytes_max


def _shown(connection: Connection) -> str:
    return "{}:{}".format(*connection.peer)
