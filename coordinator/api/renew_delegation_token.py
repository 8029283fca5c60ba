"""RenewDelegationToken, key 39, versions 1-2 (KIP-48).

v2 flexible

There are no tokens, see create_delegation_token.py.
"""

from __future__ import annotations

from rota.coordinator.api.create_delegation_token import refusal, refused_ms
from rota.coordinator.api.node import Call, Node
from rota.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def renew_delegation_token(
    node: Node, call: Call, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Refuse the request."""
    code = refusal(call)
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=refused_ms(code))
