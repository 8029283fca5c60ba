"""AlterUserScramCredentials, key 51, version 0 (KIP-554).

v0 flexible

A request names a user once. A credential counts for the next authentication; connections that are open stay open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.timeout import refuse_failure
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.client_quotas import user_node
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.scram_credentials import credential_of, write_credential
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from rota.protocol.scram import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISM_TYPES, SALT_BYTES_MAX

Change = ScramCredentialDeletion | ScramCredentialUpsertion
Configs = Mapping[str, str]

USER_CHARS_MAX: Final = 512
SALTED_PASSWORD_BYTES_MAX: Final = 1024
_TWICE: Final = "A user credential cannot be altered twice in the same request"
_ABSENT: Final = "Attempt to delete a user credential that does not exist"


def alter_user_scram_credentials(
    node: Node, call: Call, request: AlterUserScramCredentialsRequest
) -> DelayedReply[AlterUserScramCredentialsResponse]:
    """Return one result for each user."""
    return eager_tasks.start(_alter_all(node, request))


async def _alter_all(node: Node, request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    named: list[Change] = [*request.deletions, *request.upsertions]
    times = Counter(change.name for change in named)
    firsts = {change.name: change for change in reversed(named)}
    results = []
    for name in times:
        twice = times[name] > 1
        results.append(_result(name, _refuse_twice(firsts[name]) if twice else await _alter(node, firsts[name])))
    return AlterUserScramCredentialsResponse(results=tuple(results))


def _refuse_twice(first: Change) -> Refusal:
    """Return why the changes of a user are refused: as in Kafka an error of the first comes before this one."""
    return _refuse(first) or Refusal(ErrorCode.DUPLICATE_RESOURCE, _TWICE)


async def _alter(node: Node, change: Change) -> Refusal | None:
    refusal = _refuse(change)
    if refusal is not None:
        return refusal
    name = user_node(change.name)
    return await refuse_failure(node.topics.configs.update(ConfigKind.USERS, name, partial(_altered, change)))


def _refuse(change: Change) -> Refusal | None:
    if not change.name:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if len(change.name) > USER_CHARS_MAX:
        return Refusal(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Username must not be longer than {USER_CHARS_MAX} characters"
        )
    mechanism = MECHANISM_TYPES.get(change.mechanism)
    if mechanism is None:
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        return None
    if change.iterations < ITERATIONS_MIN:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return _refuse_lengths(change)


def _refuse_lengths(change: ScramCredentialUpsertion) -> Refusal | None:
    """A salted password of another length than the mechanism's keys is accepted, as by Kafka: it keys an HMAC."""
    if len(change.salt) > SALT_BYTES_MAX:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Salt must not be longer than {SALT_BYTES_MAX} bytes")
    if not 0 < len(change.salted_password) <= SALTED_PASSWORD_BYTES_MAX:
        expected = f"Salted password must have 1 to {SALTED_PASSWORD_BYTES_MAX} bytes"
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, expected)
    return None


def _altered(change: Change, before: Configs) -> Configs | Refusal:
    mechanism = MECHANISM_TYPES[change.mechanism]
    if isinstance(change, ScramCredentialUpsertion):
        credential = credential_of(mechanism, change.salt, change.salted_password, change.iterations)
        return {**before, mechanism.name: write_credential(credential)}
    if mechanism.name not in before:
        return Refusal(ErrorCode.RESOURCE_NOT_FOUND, _ABSENT)
    return {name: text for name, text in before.items() if name != mechanism.name}


def _result(user: str, refusal: Refusal | None) -> AlterUserScramCredentialsResult:
    if refusal is None:
        return AlterUserScramCredentialsResult(user=user)
    return AlterUserScramCredentialsResult(user=user, error_code=refusal.code, error_message=refusal.message)
