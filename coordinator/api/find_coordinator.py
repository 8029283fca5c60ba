"""FindCoordinator, key 10, versions 0-6.

v1 key type (group, transaction) · v3 flexible · v4 many keys (KIP-699) · v6 share groups (refused here)

The first request for a group creates `__consumer_offsets`, as in Kafka, but is answered when the topic exists.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.endpoints import address_of
from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP: Final = 0
TRANSACTION: Final = 1


def find_coordinator(node: Node, call: Call, request: FindCoordinatorRequest) -> DelayedReply[FindCoordinatorResponse]:
    """Return the broker that coordinates each key: the leader of its partition of `__consumer_offsets`."""
    return eager.start(_answer(node, call, request))


async def _answer(node: Node, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if call.version >= 4 else (request.key,)
    code, message = await _refusal(node, request.key_type)
    found = tuple(_find(node, call, key, code, message) for key in keys)
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


async def _refusal(node: Node, key_type: int) -> tuple[ErrorCode, str]:
    if key_type == TRANSACTION:
        # The one code that every client takes as final; with a retriable one it would retry until its timeout.
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Rota does not coordinate transactions yet."
    if key_type != GROUP:
        return ErrorCode.INVALID_REQUEST, f"Key type {key_type} is unknown; 0 stands for a group."
    if not await node.groups.ensure_offsets_topic():
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, "The offsets topic could not be created; the broker's log says why."
    return ErrorCode.NONE, ""
