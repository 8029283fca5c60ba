"""Requests to other brokers of the cluster: one connection to each, opened when it is needed.

Law
    A request ends within its time, by its response or a KafkaError. A broken connection is opened again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.metadata.topics import Topics
from rota.transport.errors import KafkaError
from rota.transport.shielded import shielded

if TYPE_CHECKING:
    from rota.transport.connection import Connection

SETUP_SECONDS: Final = 2.0
REQUEST_SECONDS: Final = 30.0  # request.timeout.ms of a broker


class BrokerRequests:
    """`send_request` from the first call to `stop`."""

    def __init__(self, topics: Topics, config: BrokerConfig) -> None:
        self._topics, self._config = topics, config
        self._connections: dict[int, Connection] = {}
        self._opening: dict[int, asyncio.Task[Connection]] = {}

    async def send_request(self, broker_id: int, request: Any) -> Any:
        """Send a request to a broker and return its response. Raises KafkaError."""
        connection = self._connections.get(broker_id)
        if connection is None:
            connection = await self._open(broker_id)
        return await connection.send_request(request, REQUEST_SECONDS)

    async def stop(self) -> None:
        """Close all connections."""
        opening = list(self._opening.values())
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            connection.end(KafkaError("this broker stops"))
            await connection.closed()

    async def _open(self, broker_id: int) -> Connection:
        """Open a connection in a task of its own, which all requests share: a caller may run outside of any task."""
        opening = self._opening.get(broker_id)
        if opening is None:
            opening = self._opening[broker_id] = asyncio.get_running_loop().create_task(self._connect(broker_id))
            opening.add_done_callback(lambda _: self._opening.pop(broker_id, None))
        return await shielded(opening)

    async def _connect(self, broker_id: int) -> Connection:
        from rota.coordinator.security.broker_connections import connect_to_broker  # SC4: not by a broker alone

        def ended(connection: Connection) -> None:
            if self._connections.get(broker_id) is connection:
                del self._connections[broker_id]

        connection = await connect_to_broker(
            broker_id,
            self._topics.brokers,
            self._config,
            f"broker-{self._config.node_id}-transactions",
            setup_seconds=SETUP_SECONDS,
            request_seconds=REQUEST_SECONDS,
            ended=ended,
        )
        if connection.failure is not None:
            raise connection.failure
        self._connections[broker_id] = connection
        return connection
