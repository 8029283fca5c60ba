"""FindCoordinator, key 10, versions 0-6.

v1 key type (group, transaction) · v3 flexible · v4 many keys (KIP-699) · v6 share groups (refused here)

The first request for a group creates `__consumer_offsets`, as in Kafka, but is answered when the topic exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rota.coordinator.api.endpoints import address_of
from rota.coordinator.api.leader_waits import when_leaders_live
from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP: Final = 0
TRANSACTION: Final = 1


def find_coordinator(
    node: Node, call: Call, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | DelayedReply[FindCoordinatorResponse]:
    """Return the broker that coordinates each key: the leader of its partition of `__consumer_offsets`.

    Delayed while that topic is created, and while one of the leaders may be dead.
    """
    code, message = _refusal(request.key_type)
    if code is ErrorCode.NONE and CONSUMER_OFFSETS not in node.topics:
        return eager.start(_created(node, call, request))

    def leaders() -> Iterator[int]:
        indexes = map(node.groups.partition_of, _keys(call, request))
        states = (node.topics.partition(CONSUMER_OFFSETS, index) for index in indexes)
        return (state.leader for state in states if state is not None)

    return when_leaders_live(node, leaders, lambda: _response(node, call, request, code, message))


def _keys(call: Call, request: FindCoordinatorRequest) -> tuple[str, ...]:
    return request.coordinator_keys if call.version >= 4 else (request.key,)


async def _created(node: Node, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if await node.groups.ensure_offsets_topic():
        return _response(node, call, request, ErrorCode.NONE, "")
    why = "The offsets topic could not be created; the broker's log says why."
    return _response(node, call, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, why)


def _response(
    node: Node, call: Call, request: FindCoordinatorRequest, code: ErrorCode, message: str
) -> FindCoordinatorResponse:
    found = tuple(_find(node, call, key, code, message) for key in _keys(call, request))
    if call.version >= 4:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or "NONE",
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _find(node: Node, call: Call, key: str, code: ErrorCode, message: str) -> Coordinator:
    if code is not ErrorCode.NONE:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
    leader = node.groups.leader_of(key)
    address = None if leader is None else address_of(node, call, leader)
    if address is None:
        why = "The coordinator is not available."
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=why)
    return Coordinator(key=key, node_id=address.node_id, host=address.host, port=address.port, error_message="")


def _refusal(key_type: int) -> tuple[ErrorCode, str]:
    if key_type == TRANSACTION:
        # The one code that every client takes as final; with a retriable one it would retry until its timeout.
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Rota does not coordinate transactions yet."
    if key_type != GROUP:
        return ErrorCode.INVALID_REQUEST, f"Key type {key_type} is unknown; 0 stands for a group."
    return ErrorCode.NONE, ""
