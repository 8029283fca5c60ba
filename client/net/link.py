"""The connection to one broker for one purpose: dialled when it is first needed, and again after a growing wait.

Laws
    One dial at a time, shared by everybody who waits for it; who stops waiting does not stop it.
    After a failed dial nobody dials before the backoff is over (reconnect_backoff_ms … reconnect_backoff_max_ms).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from rota.client.config import ClientConfig
from rota.client.errors import KafkaError, Unreachable
from rota.client.net.backoff import wait_ms
from rota.client.net.connection import Connection
from rota.client.net.handshake import connect
from rota.client.net.metadata import BrokerInfo


class Link:
    """One broker at one address."""

    def __init__(self, config: ClientConfig, broker: BrokerInfo, ended: Callable[[Link], None]) -> None:
        self.broker = broker
        self.connection: Connection | None = None
        self.failures = 0
        self._config = config
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._not_before = 0.0
        self._dial: asyncio.Task[Connection] | None = None
        self._closed = False

    @property
    def is_open(self) -> bool:
        return self.connection is not None and self.connection.is_open

    @property
    def in_flight(self) -> int:
        return self.connection.in_flight if self.connection is not None else 0

    @property
    def rests(self) -> bool:
        """Whether the last dial failed a short while ago."""
        return self._loop.time() < self._not_before

    async def open(self) -> Connection:
        """The connection, dialled when there is none. Raises Unreachable, TimedOut."""
        if self.connection is not None and self.connection.is_open:
            return self.connection
        if self._closed:
            raise Unreachable(f"the client was closed, or broker {self.broker} has left the cluster")
        if self._dial is None:
            self._dial = self._loop.create_task(self._dialled(), name=f"dial {self.broker}")
            self._dial.add_done_callback(self._settle)
        return await asyncio.shield(self._dial)

    async def _dialled(self) -> Connection:
        config = self._config
        rest = self._not_before - self._loop.time()
        if rest > 0:
            await asyncio.sleep(rest)
        try:
            return await connect(
                self.broker.host,
                self.broker.port,
                str(self.broker),
                config.client_id,
                setup_seconds=config.socket_connection_setup_timeout_ms / 1000,
                request_seconds=config.request_timeout_ms / 1000,
                ended=self._went,
            )
        except KafkaError:
            self._back_off()
            raise

    def _back_off(self) -> None:
        self.failures += 1
        config = self._config
        wait = wait_ms(self.failures, config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, random.random())
        self._not_before = self._loop.time() + wait / 1000

    def _settle(self, dial: asyncio.Task[Connection]) -> None:
        self._dial = None
        if dial.cancelled() or dial.exception() is not None:
            return
        self.connection = dial.result()
        if self._closed:
            self.connection.end(Unreachable("the client was closed"))
        elif self.connection.is_open:
            self.failures = 0

    def _went(self, connection: Connection) -> None:
        if connection is self.connection:
            self._back_off()
            self._ended(self)

    async def close(self, why: str) -> None:
        """End the connection; who waits for an answer is told `why`."""
        self._closed = True
        dial, self._dial = self._dial, None
        if dial is not None:
            dial.cancel()
            await asyncio.wait([dial])
        if self.connection is not None:
            self.connection.end(Unreachable(why))
            await self.connection.closed()
