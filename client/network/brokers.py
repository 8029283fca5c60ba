"""The connections to all brokers, by node id and lane; bootstrap addresses are nodes with negative ids.

Laws
    A broker whose address changed gets a new connection.
    A request for any broker goes to the least loaded one: connected before unconnected, one in backoff last.
    When no known broker answers, the bootstrap addresses are tried again (KIP-899).
    A bootstrap connection becomes the connection of the broker that listens at its address, or is closed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from rota.client.config import ClientConfig
from rota.client.errors import TimedOut, Unreachable
from rota.client.network.broker_connection import BrokerConnection
from rota.client.network.metadata import BrokerInfo, Metadata
from rota.client.network.security import security_of
from rota.transport.connection import LINGER_SECONDS, Connection


class Brokers:
    """`open(node, lane)` returns a connection; `close()` closes all. `on_lost()` is called for each lost connection.
    Raises ConfigError when a security setting cannot be used."""

    def __init__(self, config: ClientConfig, known: Callable[[], Metadata], on_lost: Callable[[], None]) -> None:
        self._config = config
        self._known = known
        self._on_lost = on_lost
        self._bootstrap = {-1 - at: BrokerInfo(-1 - at, host, port) for at, (host, port) in enumerate(config.bootstrap)}
        self._connections: dict[tuple[int, str], BrokerConnection] = {}
        self._security = security_of(config)
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def ready(self, node: int, lane: str) -> Connection | None:
        """Return the open connection, or None."""
        connection = self._connections.get((node, lane))
        found = connection.connection if connection is not None else None
        return found if found is not None and found.is_open else None

    async def open(self, node: int, lane: str = "") -> Connection:
        """Return the connection; open one if there is none. Raises Unreachable, TimedOut."""
        return self.ready(node, lane) or await self._connection_to(node, lane).open()

    async def any_lane(self, node: int) -> Connection:
        """Return a connection to that broker, of any lane. Raises Unreachable, TimedOut."""
        opened = (lane.connection for (of, _), lane in self._connections.items() if of == node and lane.is_open)
        return next((connection for connection in opened if connection is not None), None) or await self.open(node)

    def finalized_feature(self, name: str) -> int:
        """Return the finalized level of a feature in the newest epoch that an open connection has; 0 if none has it."""
        opened = (lane.connection for lane in self._connections.values() if lane.is_open)
        features = [connection.features for connection in opened if connection is not None]
        newest = max(features, key=lambda known: known.epoch, default=None)
        return newest.levels.get(name, 0) if newest is not None else 0

    def least_busy(self) -> int:
        """Return the least loaded node."""
        return self._by_load(self._known().brokers or self._bootstrap)[0]

    async def send_request_to_any(self, request: Any, refused: Callable[[Any], str | None] = lambda _: None) -> Any:
        """Send the request to one broker after the other; return the first response for which `refused` returns None.

        Raises Unreachable, which names every address.
        """
        failures: list[str] = []
        nodes = self._by_load(self._known().brokers)
        if not nodes or self._config.metadata_recovery_strategy == "rebootstrap":
            nodes += self._by_load(self._bootstrap)
        for node in nodes:
            try:
                connection = await self.open(node)
                answer = await connection.send_request(request, self._config.request_timeout_ms / 1000)
            except (Unreachable, TimedOut) as why:
                failures.append(str(why))
                continue
            refusal = refused(answer)
            if refusal is None:
                return answer
            failures.append(f"broker {connection.peer} said {refusal}")
        raise Unreachable("; ".join(failures))

    def describe_failures(self) -> str:
        """Return the failures of the unreachable brokers, for error messages."""
        failures = [
            text for connection in self._connections.values() if (text := connection.describe_failure()) is not None
        ]
        tried = {node for node, _ in self._connections}
        if not self._known().brokers:
            failures += [
                f"broker {address} was not tried yet" for node, address in self._bootstrap.items() if node not in tried
            ]
        return "; ".join(failures)

    def adopt_bootstrap(self) -> None:
        """Assign the bootstrap connections to the brokers at their addresses; close the others."""
        by_address = {(broker.host, broker.port): broker for broker in self._known().brokers.values()}
        for (node, lane), connection in list(self._connections.items()):
            if node >= 0:
                continue
            broker = by_address.get((connection.broker.host, connection.broker.port))
            if broker is not None and connection.is_open and (broker.id, lane) not in self._connections:
                connection.rename(broker)
                self._connections[broker.id, lane] = self._connections.pop((node, lane))
            elif by_address and not connection.in_flight:
                self._close_one(self._connections.pop((node, lane)), "only its address was needed")

    async def close(self, linger_seconds: float = LINGER_SECONDS) -> None:
        """Close every connection; waiting callers get Unreachable. NC13: what has no response gets `linger_seconds` to
        be sent."""
        self._closed = True
        connections, self._connections = list(self._connections.values()), {}
        closing = (
            connection.close("the client was closed", linger_seconds=linger_seconds) for connection in connections
        )
        await asyncio.gather(*closing, *self._closing)

    def _by_load(self, brokers: Iterable[int]) -> list[int]:
        nodes = list(brokers)
        random.shuffle(nodes)
        return sorted(nodes, key=self._load)

    def _load(self, node: int) -> tuple[bool, bool, int]:
        connections = [connection for (of, _), connection in self._connections.items() if of == node]
        return (
            any(connection.is_backing_off for connection in connections),
            not any(connection.is_open for connection in connections),
            sum(connection.in_flight for connection in connections),
        )

    def _connection_to(self, node: int, lane: str) -> BrokerConnection:
        if self._closed:
            raise Unreachable("the client is closed")
        known = self._known().brokers
        broker = self._bootstrap.get(node) or known.get(node)
        if broker is None:
            names = ", ".join(map(str, known.values())) or "none"
            raise Unreachable(f"no broker {node} is known in the cluster; known are: {names}")
        connection = self._connections.get((node, lane))
        if connection is None or (connection.broker.host, connection.broker.port) != (broker.host, broker.port):
            if connection is not None:
                self._close_one(connection, f"broker {node} has another address now")
            connection = self._connections[node, lane] = BrokerConnection(
                self._config, broker, lambda _: self._on_lost(), self._security
            )
        return connection

    def _close_one(self, connection: BrokerConnection, why: str) -> None:
        task = asyncio.get_running_loop().create_task(connection.close(why))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
