"""DescribeUserScramCredentials, key 50, version 0.

v0 flexible (KIP-554)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int8, Int16, Int32, String, wire, wired


@wired
class UserName:
    name: str = wire(String)


@wired
class DescribeUserScramCredentialsRequest:
    """Ask for the SCRAM credentials of users. None or no users: all users."""

    KEY, VERSIONS, FLEXIBLE = 50, range(1), 0

    users: tuple[UserName, ...] | None = wire(Array(UserName), nullable_since=0, default=None)


@wired
class CredentialInfo:
    """`mechanism`: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    mechanism: int = wire(Int8)
    iterations: int = wire(Int32)


@wired
class DescribeUserScramCredentialsResult:
    user: str = wire(String)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    credential_infos: tuple[CredentialInfo, ...] = wire(Array(CredentialInfo), default=())


@wired
class DescribeUserScramCredentialsResponse:
    """One result for each user: mechanisms and iterations, no keys."""

    KEY, VERSIONS, FLEXIBLE = 50, range(1), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    results: tuple[DescribeUserScramCredentialsResult, ...] = wire(
        Array(DescribeUserScramCredentialsResult), default=()
    )
