"""How Produce and Fetch apply the quotas of clients (KIP-13, KIP-219).

The response has the throttle time, and the connection serves no request for that long. Bytes are those of the records.
What the broker asks itself, without a connection, is not throttled.
"""

from __future__ import annotations

from functools import partial

from rota.coordinator.network.call import Call
from rota.coordinator.replica.client_throttle import ClientThrottle
from rota.coordinator.scheduling.delayed_reply import DelayedReply
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
    call.mute(throttle_ms)
    if isinstance(reply, DelayedReply):
        return reply.map(partial(_throttled, throttle_ms))
    return None if reply is None else _throttled(throttle_ms, reply)


def _throttled(throttle_ms: int, response: ProduceResponse) -> ProduceResponse:
    response.throttle_time_ms = throttle_ms
    return response


def throttle_fetch(throttle: ClientThrottle, call: Call, size_bytes: int) -> int:
    """Count the records of a response unless the client is throttled; return for how many ms it is."""
    if call.mute is None:
        return 0
    throttle_ms = throttle.consumers.admit(call.principal.name, call.client_id, size_bytes)
    if throttle_ms:
        call.mute(throttle_ms)
    return throttle_ms
