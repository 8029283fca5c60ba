"""FindCoordinator, key 10, versions 0-6.

v1 key type (group, transaction) · v3 flexible · v4 many keys (KIP-699) · v6 share groups (refused here)

The first question for a group creates `__consumer_offsets`, as in Kafka, but is answered at once.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP: Final = 0
TRANSACTION: Final = 1


def find_coordinator(node: Node, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Where the coordinator of each key lives: on a single node, here."""
    keys = request.coordinator_keys if call.version >= 4 else (request.key,)
    found = tuple(_find(node, call, request.key_type, key) for key in keys)
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


def _find(node: Node, call: Call, key_type: int, key: str) -> Coordinator:
    code, message = _refusal(node, key_type)
    if code is not ErrorCode.NONE:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
    return Coordinator(
        key=key, node_id=node.config.node_id, host=call.reached_host, port=call.reached_port, error_message=""
    )


def _refusal(node: Node, key_type: int) -> tuple[ErrorCode, str]:
    if key_type == TRANSACTION:
        # Of all codes the one that every client takes as final; a retriable one would have it ask until its timeout.
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Rota does not coordinate transactions yet."
    if key_type != GROUP:
        return ErrorCode.INVALID_REQUEST, f"Key type {key_type} is unknown; 0 stands for a group."
    if not node.groups.found():
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, "The offsets topic could not be created; the broker's log says why."
    return ErrorCode.NONE, ""
