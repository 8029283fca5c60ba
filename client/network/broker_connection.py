"""The connection to one broker for one purpose: dialled when it is first needed, and again after a growing wait.

Laws
    One dial at a time, shared by everybody who waits for it; who stops waiting does not stop it.
    After a failed dial, and after a connection that broke, nobody dials before the backoff is over
    (reconnect_backoff_ms to reconnect_backoff_max_ms).
    A connection without a request for connections_max_idle_ms is closed; that is no failure.
    Closed is closed: whoever waits gets Unreachable, and nobody dials again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from rota.client.config import ClientConfig
from rota.client.errors import KafkaError, Unreachable
from rota.client.log import logger
from rota.client.network.backoff import wait_ms
from rota.client.network.connection import Connection, copied
from rota.client.network.handshake import connect
from rota.client.network.metadata import BrokerInfo

_log = logger("rota.client.network")


class Link:
    """One broker at one address. `broke(link)` is called when a connection is lost that nobody here closed."""

    def __init__(self, config: ClientConfig, broker: BrokerInfo, broke: Callable[[Link], None]) -> None:
        self.broker = broker
        self.connection: Connection | None = None
        self.failure: KafkaError | None = None  # of the last dial or connection
        self._config = config
        self._broke = broke
        self._loop = asyncio.get_running_loop()
        self._failures = 0  # in a row
        self._greetings = 0  # answers to the handshake
        self._not_before = 0.0
        self._dial: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Connection] | None = None  # for whoever waits for the dial
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def is_open(self) -> bool:
        return self.connection is not None and self.connection.is_open

    @property
    def in_flight(self) -> int:
        return self.connection.in_flight if self.connection is not None else 0

    @property
    def rests(self) -> bool:
        """Whether it failed a short while ago and may not be dialled yet."""
        return not self.is_open and self._loop.time() < self._not_before

    @property
    def trouble(self) -> str | None:
        """What is wrong with it, as far as one can tell; None when it answers what it is asked."""
        connection = self.connection
        if connection is not None and connection.is_open and connection.answers > self._greetings:
            return f"broker {self.broker} has not answered yet" if connection.in_flight else None
        return str(self.failure or f"broker {self.broker} has not answered yet")

    def renamed(self, broker: BrokerInfo) -> None:
        """The broker at this address has told its number."""
        self.broker = broker
        if self.connection is not None:
            self.connection.peer = str(broker)

    async def open(self) -> Connection:
        """The connection, dialled when there is none. Raises Unreachable, TimedOut."""
        if self.connection is not None and self.connection.is_open:
            return self.connection
        if self._closed:
            raise Unreachable(f"the connection to broker {self.broker} was closed for good")
        if self._opened is None:
            self._opened = self._loop.create_future()
            self._dial = self._loop.create_task(self._dialled(self._opened), name=f"dial {self.broker}")
        try:
            return await asyncio.shield(self._opened)
        except KafkaError as failure:
            raise copied(failure) from failure.__cause__

    async def close(self, why: str) -> None:
        """End the connection and any dial; who waits is told `why`."""
        self._closed = True
        if self._dial is not None:
            self._dial.cancel()
            await asyncio.wait([self._dial])
        self._settle(Unreachable(why))
        if self._idle is not None:
            self._idle.cancel()
        if self.connection is not None:
            self.connection.end(Unreachable(why))
            await self.connection.closed()

    # ---- the dial

    async def _dialled(self, opened: asyncio.Future[Connection]) -> None:
        await asyncio.sleep(max(self._not_before - self._loop.time(), 0))
        config = self._config
        try:
            connection = await connect(
                self.broker.host,
                self.broker.port,
                str(self.broker),
                config.client_id,
                setup_seconds=config.socket_connection_setup_timeout_ms / 1000,
                request_seconds=config.request_timeout_ms / 1000,
                ended=self._ended,
            )
            if connection.failure is not None:  # it answered, and broke at once
                raise connection.failure
        except KafkaError as failure:
            self._failed(failure)
            return
        except Exception as why:  # noqa: BLE001  # our own mistake, or the system's: whoever waits is told
            _log.error("dialling a broker failed in an unforeseen way", broker=str(self.broker), exc_info=why)
            self._failed(Unreachable(f"no connection to broker {self.broker}: {type(why).__name__}: {why}"))
            return
        self.connection, self._failures, self._greetings = connection, 0, connection.answers
        self._watch_idleness(connection)
        self._opened = self._dial = None
        if not opened.done():
            opened.set_result(connection)

    def _settle(self, failure: KafkaError) -> None:
        """Tell everybody who waits for the dial that it failed."""
        opened, self._opened = self._opened, None
        self._dial = None
        if opened is not None and not opened.done():
            opened.set_exception(failure)
            opened.exception()  # nobody may be left who waits

    # ---- what fails, and what is idle

    def _failed(self, failure: KafkaError) -> None:
        tell = _log.debug if self._failures else _log.warning
        tell("no connection to a broker", broker=str(self.broker), reason=str(failure))
        self._back_off(failure)
        self._settle(failure)

    def _back_off(self, failure: KafkaError) -> None:
        self.failure = failure
        self._failures += 1
        first = self._config.reconnect_backoff_ms
        longest = max(first, self._config.reconnect_backoff_max_ms)  # as Kafka has it: the longest is never shorter
        wait = wait_ms(self._failures, first, longest, random.random())
        self._not_before = self._loop.time() + wait / 1000

    def _ended(self, connection: Connection) -> None:
        if connection is not self.connection or self._closed:
            return
        if self._idle is not None:
            self._idle.cancel()
        failure = connection.failure
        if failure is not None and not isinstance(failure, Idle):
            _log.info("lost the connection to a broker", broker=str(self.broker), reason=str(failure))
            self._back_off(failure)
            self._broke(self)

    def _watch_idleness(self, connection: Connection) -> None:
        if self._config.connections_max_idle_ms >= 0:
            at = connection.used_at + self._config.connections_max_idle_ms / 1000
            self._idle = self._loop.call_at(at, self._look, connection, connection.used_at)

    def _look(self, connection: Connection, used_at: float) -> None:
        if connection.in_flight or connection.used_at > used_at:
            idle = self._config.connections_max_idle_ms / 1000
            at = max(connection.used_at + idle, self._loop.time() + (idle if connection.in_flight else 0))
            self._idle = self._loop.call_at(at, self._look, connection, connection.used_at)
        else:
            connection.end(Idle(f"the connection to broker {self.broker} was idle and is closed"))


class Idle(Unreachable):
    """Closed because nobody used it (connections_max_idle_ms)."""
