"""FindCoordinator, key 10, versions 0-6.

v1 key type (group, transaction) · v3 flexible · v4 many keys (KIP-699) · v6 share groups (refused here)

The first request for a group creates `__consumer_offsets`, the first for a transactional id `__transaction_state`, as
in Kafka, but it is answered when the topic exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rota.coordinator.api.endpoints import address_of
from rota.coordinator.api.leader_waits import when_leaders_live
from rota.coordinator.api.node import Call, Node
from rota.coordinator.group_coordinator import GroupCoordinator
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, TRANSACTION_STATE
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.transaction_coordinator import TransactionCoordinator
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
    """Return the broker that coordinates each key: the leader of its partition of the internal topic.

    Delayed while that topic is created, and while one of the leaders may be dead.
    """
    code, message = _refusal(request.key_type)
    topic = TRANSACTION_STATE if request.key_type == TRANSACTION else CONSUMER_OFFSETS
    if code is ErrorCode.NONE and topic not in node.topics:
        return eager_tasks.start(_created(node, call, request))

    def leaders() -> Iterator[int]:
        indexes = map(_coordinator(node, request.key_type).partition_of, _keys(call, request))
        states = (node.topics.partition(topic, index) for index in indexes)
        return (state.leader for state in states if state is not None)

    return when_leaders_live(node, leaders, lambda: _response(node, call, request, code, message))


def _keys(call: Call, request: FindCoordinatorRequest) -> tuple[str, ...]:
    return request.coordinator_keys if call.version >= 4 else (request.key,)


async def _created(node: Node, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if await _coordinator(node, request.key_type).ensure_topic():
        return _response(node, call, request, ErrorCode.NONE, "")
    why = "The internal topic could not be created; the broker's log says why."
    return _response(node, call, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, why)


def _response(
    node: Node, call: Call, request: FindCoordinatorRequest, code: ErrorCode, message: str
) -> FindCoordinatorResponse:
    coordinator = _coordinator(node, request.key_type)
    found = tuple(_find(node, call, coordinator, key, code, message) for key in _keys(call, request))
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


def _coordinator(node: Node, key_type: int) -> GroupCoordinator | TransactionCoordinator:
    return node.transactions if key_type == TRANSACTION else node.groups


def _find(
    node: Node,
    call: Call,
    coordinator: GroupCoordinator | TransactionCoordinator,
    key: str,
    code: ErrorCode,
    message: str,
) -> Coordinator:
    if code is not ErrorCode.NONE:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
    leader = coordinator.leader_of(key)
    address = None if leader is None else address_of(node, call, leader)
    if address is None:
        why = "The coordinator is not available."
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=why)
    return Coordinator(key=key, node_id=address.node_id, host=address.host, port=address.port, error_message="")


def _refusal(key_type: int) -> tuple[ErrorCode, str]:
    if key_type not in (GROUP, TRANSACTION):
        why = f"Key type {key_type} is unknown; 0 stands for a group, 1 for a transactional id."
        return ErrorCode.INVALID_REQUEST, why
    return ErrorCode.NONE, ""
