"""CreateDelegationToken, key 38, versions 1-3.

v2 flexible · v3 the owner of the token (KIP-373)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Blob, Int16, Int32, Int64, String, wire, wired


@wired
class CreatableRenewer:
    principal_type: str = wire(String)
    principal_name: str = wire(String)


@wired
class CreateDelegationTokenRequest:
    """Ask for a token (KIP-48). `max_lifetime_ms`: -1 for the broker's default."""

    KEY, VERSIONS, FLEXIBLE = 38, range(1, 4), 2

    owner_principal_type: str | None = wire(String, since=3, nullable_since=3, default=None)
    owner_principal_name: str | None = wire(String, since=3, nullable_since=3, default=None)
    renewers: tuple[CreatableRenewer, ...] = wire(Array(CreatableRenewer), default=())
    max_lifetime_ms: int = wire(Int64, default=-1)


@wired
class CreateDelegationTokenResponse:
    KEY, VERSIONS, FLEXIBLE = 38, range(1, 4), 2

    error_code: int = wire(Int16, default=0)
    principal_type: str = wire(String, default="")
    principal_name: str = wire(String, default="")
    token_requester_principal_type: str = wire(String, since=3, default="")
    token_requester_principal_name: str = wire(String, since=3, default="")
    issue_timestamp_ms: int = wire(Int64, default=-1)
    expiry_timestamp_ms: int = wire(Int64, default=-1)
    max_timestamp_ms: int = wire(Int64, default=-1)
    token_id: str = wire(String, default="")
    hmac: bytes = wire(Blob, default=b"")
    throttle_time_ms: int = wire(Int32, default=0)
