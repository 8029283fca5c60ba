"""DescribeDelegationToken, key 41, versions 1-3 (KIP-48).

v2 flexible · v3 who asked for the token (KIP-373)

There are no tokens, see create_delegation_token.py.
"""

from __future__ import annotations

from rota.coordinator.api.create_delegation_token import refusal
from rota.coordinator.api.node import Call, Node
from rota.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def describe_delegation_token(
    node: Node, call: Call, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Refuse the request."""
    return DescribeDelegationTokenResponse(error_code=refusal(call))
