"""DescribeUserScramCredentials, key 50, version 0 (KIP-554).

v0 flexible

Mechanisms and iterations of users; salts and keys are never shown. Without an error the message is empty, not null, as
in Kafka.
"""

from __future__ import annotations

from collections import Counter

from rota.coordinator.api.node import Call, Node
from rota.coordinator.security.scram_credentials import credentials_of, users_with_credentials
from rota.protocol.errors import ErrorCode, message
from rota.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

Result = DescribeUserScramCredentialsResult


def describe_user_scram_credentials(
    node: Node, call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Return the credentials of the named users, or of all."""
    times = Counter(user.name for user in request.users or ())
    names = list(times) or users_with_credentials(node.topics)
    return DescribeUserScramCredentialsResponse(
        error_message="", results=tuple(_describe(node, name, is_named_once=times[name] < 2) for name in names)
    )


def _describe(node: Node, user: str, *, is_named_once: bool) -> Result:
    if not is_named_once:
        why = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return Result(user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=message(why))
    infos = tuple(
        CredentialInfo(mechanism=mechanism.type, iterations=credential.iterations)
        for mechanism, credential in credentials_of(node.topics, user)
    )
    if not infos:
        why = f"Attempt to describe a user credential that does not exist: {user}"
        return Result(user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=message(why))
    return Result(user=user, error_message="", credential_infos=infos)
