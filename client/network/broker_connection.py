"""The connection to one broker on one lane: opened at the first request, reopened after a growing wait.

Laws
    One connection attempt at a time, shared by all callers that wait for it; a cancelled caller does not stop it.
    After a failed attempt, and after a lost connection, there is no attempt before the backoff is over
    (reconnect_backoff_ms to reconnect_backoff_max_ms).
    A connection without a request for connections_max_idle_ms is closed; that is no failure.
    A broker that hangs up at the first request is asked whether it requires SASL, at the next attempt.
    After `close` every caller gets Unreachable, and there is no further attempt.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from rota.client.config import ClientConfig
from rota.client.errors import KafkaError, Unreachable
from rota.client.log import logger
from rota.client.network.backoff import wait_ms
from rota.client.network.metadata import BrokerInfo
from rota.transport.authentication import require_no_sasl
from rota.transport.connection import LINGER_SECONDS, Connection, copied
from rota.transport.handshake import connect
from rota.transport.security import PLAINTEXT, Security
from rota.transport.shielded import shielded

_log = logger("rota.client.network")


class BrokerConnection:
    """One broker at one address. `on_lost(self)` is called when the connection is lost and was not closed here."""

    def __init__(
        self,
        config: ClientConfig,
        broker: BrokerInfo,
        on_lost: Callable[[BrokerConnection], None],
        security: Security = PLAINTEXT,
    ) -> None:
        self.broker = broker
        self.connection: Connection | None = None
        self.failure: KafkaError | None = None  # of the last attempt or connection
        self._config = config
        self._on_lost = on_lost
        self._security = security
        self._loop = asyncio.get_running_loop()
        self._failures = 0  # consecutive
        self._greetings = 0  # answers that belong to the handshake
        self._not_before = 0.0
        self._attempt: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Connection] | None = None  # resolved by the attempt
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False
        self._suspects_sasl = False  # it hung up at the first request after the handshake

    @property
    def is_open(self) -> bool:
        return self.connection is not None and self.connection.is_open

    @property
    def in_flight(self) -> int:
        return self.connection.in_flight if self.connection is not None else 0

    @property
    def is_backing_off(self) -> bool:
        """Whether it failed and its backoff is not over."""
        return not self.is_open and self._loop.time() < self._not_before

    def describe_failure(self) -> str | None:
        """Return why this broker cannot be reached, for error messages; None if it can."""
        connection = self.connection
        if connection is not None and connection.is_open and connection.answers > self._greetings:
            return f"broker {self.broker} has not answered yet" if connection.in_flight else None
        return str(self.failure or f"broker {self.broker} has not answered yet")

    def rename(self, broker: BrokerInfo) -> None:
        """Set the broker's node id, which metadata named for this address."""
        self.broker = broker
        if self.connection is not None:
            self.connection.peer = str(broker)

    async def open(self) -> Connection:
        """Return the open connection; open one if there is none. Raises Unreachable, TimedOut."""
        if self.connection is not None and self.connection.is_open:
            return self.connection
        if self._closed:
            raise Unreachable(f"the connection to broker {self.broker} was closed for good")
        if self._opened is None:
            self._opened = self._loop.create_future()
            self._attempt = self._loop.create_task(self._connect(self._opened), name=f"connect {self.broker}")
            self._attempt.add_done_callback(self._attempt_ended)
        try:
            return await shielded(self._opened)
        except KafkaError as failure:
            raise copied(failure) from failure.__cause__

    async def close(self, why: str, *, linger_seconds: float = LINGER_SECONDS) -> None:
        """Close the connection and cancel any attempt; waiting callers get Unreachable(why). NC13: what has no response
        gets `linger_seconds` to be sent."""
        self._closed = True
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.wait([self._attempt])
        self._fail_callers(Unreachable(why))
        if self._idle is not None:
            self._idle.cancel()
        if self.connection is not None:
            self.connection.end(Unreachable(why), linger_seconds=linger_seconds)
            await self.connection.closed()

    # ---- one attempt

    async def _connect(self, opened: asyncio.Future[Connection]) -> None:
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
                security=self._security,
            )
            if self._suspects_sasl:
                await self._require_no_sasl(connection)
            if connection.failure is not None:  # it closed directly after the handshake
                raise connection.failure
        except KafkaError as failure:
            self._failed(failure)
            return
        except Exception as why:  # noqa: BLE001  # our own mistake, or the system's: the callers get it
            _log.error("connecting to a broker failed unexpectedly", broker=str(self.broker), exc_info=why)
            self._failed(Unreachable(f"no connection to broker {self.broker}: {type(why).__name__}: {why}"))
            return
        self.connection, self._failures, self._greetings = connection, 0, connection.answers
        self._schedule_idle_check(connection)
        self._opened = self._attempt = None
        if not opened.done():
            opened.set_result(connection)

    async def _require_no_sasl(self, connection: Connection) -> None:
        """Raises AuthenticationFailed when the listener requires SASL. Whatever is raised, the connection is closed."""
        try:
            await require_no_sasl(connection, self._config.request_timeout_ms / 1000)
        except BaseException as why:  # also when `close` cancels the attempt
            connection.end(why if isinstance(why, KafkaError) else Unreachable("the attempt to connect was given up"))
            await connection.closed()
            raise
        self._suspects_sasl = False

    def _attempt_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() and task is self._attempt and not self._closed:
            self._failed(Unreachable(f"the attempt to connect to broker {self.broker} was cancelled"))

    def _fail_callers(self, failure: KafkaError) -> None:
        """Raise the failure in all callers that wait for the attempt."""
        opened, self._opened = self._opened, None
        self._attempt = None
        if opened is not None and not opened.done():
            opened.set_exception(failure)
            opened.exception()  # there may be no caller left to retrieve it

    # ---- failures and idle connections

    def _failed(self, failure: KafkaError) -> None:
        log = _log.debug if self._failures else _log.warning
        log("no connection to a broker", broker=str(self.broker), reason=str(failure))
        self._back_off(failure)
        self._fail_callers(failure)

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
            self._suspects_sasl = self._security.login is None and connection.answers <= self._greetings
            self._back_off(failure)
            self._on_lost(self)

    def _schedule_idle_check(self, connection: Connection) -> None:
        if self._config.connections_max_idle_ms >= 0:
            at = connection.used_at + self._config.connections_max_idle_ms / 1000
            self._idle = self._loop.call_at(at, self._check_idle, connection, connection.used_at)

    def _check_idle(self, connection: Connection, used_at: float) -> None:
        if connection.in_flight or connection.used_at > used_at:
            idle = self._config.connections_max_idle_ms / 1000
            at = max(connection.used_at + idle, self._loop.time() + (idle if connection.in_flight else 0))
            self._idle = self._loop.call_at(at, self._check_idle, connection, connection.used_at)
        else:
            connection.end(Idle(f"the connection to broker {self.broker} was idle and is closed"))


class Idle(Unreachable):
    """The connection was closed because it was not used for connections_max_idle_ms."""
