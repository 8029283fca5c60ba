"""CreateDelegationToken, key 38, versions 1-3 (KIP-48).

v2 flexible · v3 the owner of the token (KIP-373)

Rota issues no tokens: it answers as a Kafka without `delegation.token.secret.key`, whose controller leaves the times of
its refusals 0, while its broker sets them to -1. The API is served as tools guess the version of a cluster by it.
"""

from __future__ import annotations

from dataclasses import replace

from rota.coordinator.api.node import Call, Node
from rota.coordinator.security.principal import ANONYMOUS, USER
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse


def create_delegation_token(
    node: Node, call: Call, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Refuse the request."""
    code, requester = refusal(call), call.principal
    owner_type, owner_name = requester.type, requester.name
    if request.owner_principal_name:
        owner_type, owner_name = request.owner_principal_type or "", request.owner_principal_name
    is_allowed = code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if is_allowed and any(renewer.principal_type != USER for renewer in request.renewers):
        code = ErrorCode.INVALID_PRINCIPAL_TYPE
    response = CreateDelegationTokenResponse(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
    )
    return with_refusal(response, code)


def with_refusal(response: CreateDelegationTokenResponse, code: ErrorCode) -> CreateDelegationTokenResponse:
    """Return the response with this error and the times of it."""
    ms = refused_ms(code)
    return replace(response, error_code=code, issue_timestamp_ms=ms, expiry_timestamp_ms=ms, max_timestamp_ms=ms)


def refused_ms(code: ErrorCode) -> int:
    """Return the times of a refusal."""
    return 0 if code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED else -1


def refusal(call: Call) -> ErrorCode:
    """Return the error of every request for tokens; Kafka takes none from a client that is not authenticated."""
    if call.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
