"""How APIs apply the quotas of clients (KIP-13, KIP-124, KIP-219, KIP-599).

The response has the throttle time, and the connection serves no request for that long. Bytes are those of the records.
What the broker asks itself, without a connection, is not throttled.

Laws
    CQ12 The time of the loop that a request takes, from its decoding to its encoding, counts as request_percentage of
         its client: 100 is one core. As in Kafka a Fetch of a follower and WriteTxnMarkers do not count, if their
        principal has CLUSTER_ACTION: any client can claim to be a broker.
    CQ13 CreateTopics, CreatePartitions and DeleteTopics of a client above controller_mutation_rate are refused with
         THROTTLING_QUOTA_EXCEEDED, topic by topic, in versions whose clients know this error; in earlier ones they are
         done, and the client is throttled. Metadata creates no topics for such a client, which asks again.
    CQ15 All records that a client sends count for its producer_byte_rate, those as well that are refused.
    CQ17 What a client sends until it has authenticated by SASL counts for no quota, as in Kafka: else all who log in
        would share that of ANONYMOUS, and who never logs in could use it up.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from rota.coordinator.api.node import Node
from rota.coordinator.metadata.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.network.call import Call
from rota.coordinator.network.dispatch import ApiHandler
from rota.coordinator.replica.client_throttle import ClientThrottle
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.principal import ANONYMOUS
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:  # the broker loads an API's messages at its first request
    from rota.protocol.messages.fetch import FetchRequest
    from rota.protocol.messages.produce import ProduceRequest, ProduceResponse


def throttle_produce(
    throttle: ClientThrottle,
    call: Call,
    request: ProduceRequest,
    reply: ProduceResponse | DelayedReply[ProduceResponse] | None,
) -> ProduceResponse | DelayedReply[ProduceResponse] | None:
    """Count the records of a request that was served; return its reply with the throttle time."""
    if call.mute is None:
        return reply
    size = sum(len(each.records or b"") for topic in request.topic_data for each in topic.partition_data)
    throttle_ms = throttle.producers.record(call.principal.name, call.client_id, size)
    if not throttle_ms:
        return reply
    throttle.count(PRODUCER_BYTE_RATE, throttle_ms)
    call.mute(throttle_ms)
    throttled: ProduceResponse | DelayedReply[ProduceResponse] | None = _throttled_reply(throttle_ms, reply)
    return throttled


def _throttled_reply(throttle_ms: int, reply: Any) -> Any:
    if isinstance(reply, DelayedReply):
        return reply.map(partial(_throttled, throttle_ms))
    return _throttled(throttle_ms, reply)


def _throttled(throttle_ms: int, response: Any) -> Any:
    """Return the response with a throttle time, if it has a field for that; the longest one counts."""
    if getattr(response, "throttle_time_ms", throttle_ms) >= throttle_ms:
        return response
    throttled = copy(response)  # APIs may return one response many times
    throttled.throttle_time_ms = throttle_ms
    return throttled


def throttle_fetch(throttle: ClientThrottle, call: Call, size_bytes: int) -> int:
    """Count the records of a response unless the client is throttled; return for how many ms it is."""
    if call.mute is None:
        return 0
    throttle_ms = throttle.consumers.admit(call.principal.name, call.client_id, size_bytes)
    if throttle_ms:
        throttle.count(CONSUMER_BYTE_RATE, throttle_ms)
        call.mute(throttle_ms)
    return throttle_ms


def measured(handler: ApiHandler, now_ns: Callable[[], int] = perf_counter_ns) -> ApiHandler:
    """CQ12. Return a handler of one connection that counts the time of its requests."""
    timed = _TimedApi(handler, now_ns)
    return handler._replace(decode=timed.decode, serve=timed.serve, encode=timed.encode, parts=timed.parts)


class _TimedApi:
    """The time of an encoding counts with the next request: it ends after the throttle time is known."""

    __slots__ = ("_handler", "_now_ns", "_spent_ns")

    def __init__(self, handler: ApiHandler, now_ns: Callable[[], int]) -> None:
        self._handler, self._now_ns, self._spent_ns = handler, now_ns, 0

    def decode(self, frame: bytes, at: int = 0) -> tuple[Any, int]:
        return self._timed(self._handler.decode, frame, at)  # type: ignore[no-any-return]

    def encode(self, response: Any) -> bytes:
        return self._timed(self._handler.encode, response)  # type: ignore[no-any-return]

    def parts(self, response: Any) -> list[bytes | memoryview]:
        return self._timed(self._handler.parts, response)  # type: ignore[no-any-return]

    def serve(self, node: Node, call: Call, request: Any) -> Any:
        reply = self._timed(self._handler.serve, node, call, request)
        spent_ns, self._spent_ns = self._spent_ns, 0
        throttle = node.client_throttle
        if throttle is None or call.mute is None or _is_logging_in(call) or self._is_exempt(node, call, request):
            return reply
        throttle_ms = throttle.requests.record(call.principal.name, call.client_id, spent_ns)
        if not throttle_ms:
            return reply
        throttle.count(REQUEST_PERCENTAGE, throttle_ms)
        call.mute(throttle_ms)
        return _throttled_reply(throttle_ms, reply)

    def _is_exempt(self, node: Node, call: Call, request: Any) -> bool:
        api = self._handler.name
        if api != "WriteTxnMarkers" and not (api == "Fetch" and _is_of_follower(request)):
            return False
        if node.authorizer is None:
            return True
        from rota.coordinator.security.acl import CLUSTER_NAME  # SC4
        from rota.coordinator.security.operations import Operation, ResourceType

        host = call.client_host.lstrip("/")
        return node.authorizer.is_allowed(
            call.principal, host, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def _timed(self, function: Callable[..., Any], *arguments: Any) -> Any:
        began_ns = self._now_ns()
        try:
            return function(*arguments)
        finally:
            self._spent_ns += self._now_ns() - began_ns


def _is_logging_in(call: Call) -> bool:
    """CQ17."""
    return call.sasl is not None and call.principal is ANONYMOUS


def _is_of_follower(request: FetchRequest) -> bool:
    replica = request.replica_state
    return (request.replica_id if replica is None else replica.replica_id) >= 0


class MutationQuota:
    """CQ13. The controller_mutation_rate of the client of one request."""

    def __init__(self, node: Node, call: Call, *, strict_since: int) -> None:
        self._throttle, self._call = node.client_throttle, call
        self._is_strict = call.version >= strict_since
        self._throttle_ms = 0

    def refuse(self, partitions: int) -> Refusal | None:
        """Count that many partitions; return why they can not be created or deleted now."""
        call, throttle = self._call, self._throttle
        if throttle is None or call.mute is None:
            return None
        user = call.principal.name
        throttle_ms = throttle.mutations.take(user, call.client_id, partitions, is_strict=self._is_strict)
        self._throttle_ms = max(self._throttle_ms, throttle_ms)
        if not throttle_ms or not self._is_strict:
            return None
        return Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")

    def is_allowed(self, partitions: int) -> bool:
        """Return whether that many may be created, without a word to the client; a refusal counts, without time."""
        if self.refuse(partitions) is None:
            return True
        if self._throttle is not None:
            self._throttle.count(CONTROLLER_MUTATION_RATE, 0)
        return False

    def apply(self, response: Any) -> None:
        """Set the throttle time of the response and of the connection."""
        if self._throttle is not None and self._call.mute is not None and self._throttle_ms:
            self._throttle.count(CONTROLLER_MUTATION_RATE, self._throttle_ms)
            self._call.mute(self._throttle_ms)
            response.throttle_time_ms = self._throttle_ms
