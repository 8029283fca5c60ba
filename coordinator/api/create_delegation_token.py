"""CreateDelegationToken, key 38, versions 1-3 (KIP-48).

v2 flexible · v3 the owner of the token (KIP-373)

Rota issues no tokens: it answers as a Kafka without `delegation.token.secret.key`. The API is served as tools guess the
version of a cluster by it.
"""

from __future__ import annotations

from rota.coordinator.api.node import Call, Node
from rota.coordinator.security.principal import ANONYMOUS
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse


def create_delegation_token(
    node: Node, call: Call, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Refuse the request."""
    principal_type, principal_name = call.principal.type, call.principal.name
    return CreateDelegationTokenResponse(
        error_code=refusal(call),
        principal_type=request.owner_principal_type or principal_type,
        principal_name=request.owner_principal_name or principal_name,
        token_requester_principal_type=principal_type,
        token_requester_principal_name=principal_name,
    )


def refusal(call: Call) -> ErrorCode:
    """Return the error of every request for tokens; Kafka takes none from a client that is not authenticated."""
    if call.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
