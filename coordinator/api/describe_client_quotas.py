"""DescribeClientQuotas, key 48, versions 0-1 (KIP-546).

v1 flexible

Rota has no quotas, and no API that would create one: a valid filter gets an empty list. kafka-configs asks this before
it shows users.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

ENTITY_TYPES: Final = ("user", "client-id", "ip")
EXACT, DEFAULT, ANY = 0, 1, 2


def describe_client_quotas(
    node: Node, call: Call, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Return the quotas that match the filter: none."""
    times = Counter(component.entity_type for component in request.components)
    if max(times.values(), default=0) > 1:
        return _refuse(ErrorCode.INVALID_REQUEST, "Duplicate entity filter component entity type")
    for component in request.components:
        refusal = _refuse_component(component)
        if refusal is not None:
            return refusal
    return DescribeClientQuotasResponse()


def _refuse_component(component: ComponentData) -> DescribeClientQuotasResponse | None:
    if not component.entity_type:
        return _refuse(ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type")
    if component.entity_type not in ENTITY_TYPES:
        return _refuse(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{component.entity_type}' not supported")
    if component.match_type not in (EXACT, DEFAULT, ANY):
        return _refuse(ErrorCode.INVALID_REQUEST, f"Unexpected match type: {component.match_type}")
    if (component.match_type == EXACT) is (component.match is None):
        return _refuse(ErrorCode.INVALID_REQUEST, "A filter for an exact name, and no other, has a name")
    return None


def _refuse(code: int, why: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=why, entries=None)
