"""Kafka requests that the HTTP side sends: to this broker's own functions, to other brokers over connections.

So the console shows what a Kafka client would see, of the whole cluster, and its actions have Kafka's checks.

Laws
    WB15 Requests to a broker without a connection wait for one attempt to connect, and fail with it together.
    WB14 This broker's functions serve what a connection could have brought: each request is encoded and decoded first.
        A text that the protocol cannot carry (a lone surrogate, 40,000 bytes) is refused; it would fail a whole shard.
"""

from __future__ import annotations

import asyncio
import struct
from functools import partial
from typing import Any, Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.routes import routes
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.compiler import codec
from rota.protocol.errors import ErrorCode
from rota.protocol.registry import APIS
from rota.transport.connection import Connection
from rota.transport.errors import KafkaError
from rota.transport.shielded import shielded

CLIENT_ID: Final = "rota-console"
CLIENT_HOST: Final = "/127.0.0.1"
SETUP_SECONDS: Final = 3.0
REQUEST_SECONDS: Final = 10.0
NO_BROKER: Final = -1


class ApiError(Exception):
    """The response to a failed HTTP request: its status and a remedy."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class BrokerRequests:
    """Requests to the brokers of the cluster. Connections are kept, one for each broker."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._routes = routes()
        self._connections: dict[int, Connection] = {}
        self._attempts: dict[int, asyncio.Future[Connection]] = {}

    @property
    def own_id(self) -> int:
        return self.node.config.node_id

    async def send_request(self, broker_id: int, request: Any, version: int) -> Any:
        """Return the response of a broker. Raises ApiError."""
        request = as_received(request, version)
        if broker_id == self.own_id:
            return await self._serve_locally(request, version)
        name = APIS[request.KEY].name
        try:
            connection = await self._connection(broker_id)
            return await connection.send_request(request, REQUEST_SECONDS, version, version)
        except KafkaError as failure:
            raise ApiError(502, f"broker {broker_id} did not answer {name}: {failure}") from failure

    async def send_request_to_all(self, request: Any, version: int) -> list[tuple[int, Any]]:
        """Return the responses of all live brokers; those that do not answer are left out."""
        brokers = sorted({*self.node.topics.brokers, self.own_id})
        answers = await asyncio.gather(
            *(self.send_request(each, request, version) for each in brokers), return_exceptions=True
        )
        found: list[tuple[int, Any]] = []
        for broker_id, answer in zip(brokers, answers, strict=True):
            if isinstance(answer, BaseException) and not isinstance(answer, ApiError):
                raise answer
            if not isinstance(answer, ApiError):
                found.append((broker_id, answer))
        return found

    async def send_request_to_coordinator(self, group_id: str, request: Any, version: int) -> Any:
        """Return the response of the group's coordinator. Raises ApiError."""
        return await self.send_request(self.coordinator(group_id), request, version)

    def coordinator(self, group_id: str) -> int:
        """Return the broker that coordinates a group. Raises ApiError."""
        broker_id = self.node.groups.leader_of(group_id)
        if broker_id is None:
            raise ApiError(404 if not self.node.groups.is_loading else 503, "no broker coordinates this group")
        return broker_id

    def stop(self) -> None:
        """Close the connections."""
        for attempt in list(self._attempts.values()):
            attempt.cancel()
        for connection in self._connections.values():
            connection.end(KafkaError("the console is closed"))
        self._connections.clear()

    async def _serve_locally(self, request: Any, version: int) -> Any:
        route = self._routes[request.KEY]
        endpoint = self.node.config.advertises or self.node.config.listens
        call = Call(version, CLIENT_ID, CLIENT_HOST, endpoint[0].host, endpoint[0].port, listener=endpoint[0].listener)
        reply = route.serve(self.node, call, request)
        if not isinstance(reply, DelayedReply):
            return reply
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        reply.then(lambda value: None if answered.done() else answered.set_result(value))
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                value = await answered
        except TimeoutError:
            reply.abandon()
            raise ApiError(504, f"{route.name} took longer than {REQUEST_SECONDS:.0f} s") from None
        if isinstance(value, Exception):
            raise value
        return value

    async def _connection(self, broker_id: int) -> Connection:
        """WB15. Raises KafkaError, ApiError."""
        connection = self._connections.get(broker_id)
        if connection is not None and connection.is_open:
            return connection
        attempt = self._attempts.get(broker_id)
        if attempt is None:
            attempt = self._attempts[broker_id] = asyncio.ensure_future(self._connect(broker_id))
            attempt.add_done_callback(partial(self._attempt_ended, broker_id))
        return await shielded(attempt)

    def _attempt_ended(self, broker_id: int, attempt: asyncio.Future[Connection]) -> None:
        self._attempts.pop(broker_id, None)
        if not attempt.cancelled():
            attempt.exception()  # the callers have it; there may be none left

    async def _connect(self, broker_id: int) -> Connection:
        """Raises KafkaError, ApiError."""
        from rota.coordinator.security.broker_connections import NotRegistered, connect_to_broker  # SC4

        node = self.node
        try:
            connection = await connect_to_broker(
                broker_id,
                node.topics.brokers,
                node.config,
                CLIENT_ID,
                setup_seconds=SETUP_SECONDS,
                request_seconds=REQUEST_SECONDS,
                ended=lambda _: None,
            )
        except NotRegistered:
            raise ApiError(404, f"broker {broker_id} is not alive") from None
        self._connections[broker_id] = connection
        return connection


def as_received(request: Any, version: int) -> Any:
    """Return the request as a broker decodes it. Raises ApiError for one that cannot be sent."""
    converted = codec(type(request), version)
    try:
        return converted.decode(converted.encode(request))[0]
    except (ValueError, struct.error) as why:
        name = APIS[request.KEY].name
        raise ApiError(400, f"{name} cannot carry this: a text is too long, or not valid Unicode") from why


def check(code: int, subject: str) -> None:
    """Raise ApiError for an error code of Kafka."""
    error = ErrorCode.of(code)
    if error is ErrorCode.NONE:
        return
    status = _STATUS.get(error, 409)
    raise ApiError(status, f"{subject}: {error.text} ({error.name})")


_STATUS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.UNKNOWN_MEMBER_ID: 404,
    ErrorCode.INVALID_GROUP_ID: 400,
    ErrorCode.INVALID_TOPIC_EXCEPTION: 400,
    ErrorCode.INVALID_PARTITIONS: 400,
    ErrorCode.INVALID_REPLICATION_FACTOR: 400,
    ErrorCode.INVALID_CONFIG: 400,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.OFFSET_OUT_OF_RANGE: 416,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: 503,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: 503,
    ErrorCode.NOT_COORDINATOR: 503,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: 503,
    ErrorCode.KAFKA_STORAGE_ERROR: 503,
}
