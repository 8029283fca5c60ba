"""AlterUserScramCredentials, key 51, version 0.

v0 flexible (KIP-554)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Blob, Int8, Int16, Int32, String, wire, wired


@wired
class ScramCredentialDeletion:
    """`mechanism`: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    name: str = wire(String)
    mechanism: int = wire(Int8)


@wired
class ScramCredentialUpsertion:
    """The client salts the password, so that the password is not sent."""

    name: str = wire(String)
    mechanism: int = wire(Int8)
    iterations: int = wire(Int32)
    salt: bytes = wire(Blob)
    salted_password: bytes = wire(Blob)

    def __repr__(self) -> str:
        return f"ScramCredentialUpsertion(name={self.name!r}, mechanism={self.mechanism})"


@wired
class AlterUserScramCredentialsRequest:
    """Remove and set SCRAM credentials; a request names a user once."""

    KEY, VERSIONS, FLEXIBLE = 51, range(1), 0

    deletions: tuple[ScramCredentialDeletion, ...] = wire(Array(ScramCredentialDeletion), default=())
    upsertions: tuple[ScramCredentialUpsertion, ...] = wire(Array(ScramCredentialUpsertion), default=())


@wired
class AlterUserScramCredentialsResult:
    user: str = wire(String)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)


@wired
class AlterUserScramCredentialsResponse:
    """One result for each user."""

    KEY, VERSIONS, FLEXIBLE = 51, range(1), 0

    throttle_time_ms: int = wire(Int32, default=0)
    results: tuple[AlterUserScramCredentialsResult, ...] = wire(Array(AlterUserScramCredentialsResult), default=())
