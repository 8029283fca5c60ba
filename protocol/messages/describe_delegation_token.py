"""DescribeDelegationToken, key 41, versions 1-3.

v2 flexible · v3 who asked for the token (KIP-373)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Blob, Int16, Int32, Int64, String, wire, wired


@wired
class DescribeDelegationTokenOwner:
    principal_type: str = wire(String)
    principal_name: str = wire(String)


@wired
class DescribeDelegationTokenRequest:
    """Ask for the tokens of owners. None: of all."""

    KEY, VERSIONS, FLEXIBLE = 41, range(1, 4), 2

    owners: tuple[DescribeDelegationTokenOwner, ...] | None = wire(
        Array(DescribeDelegationTokenOwner), nullable_since=0, default=None
    )


@wired
class DescribedDelegationTokenRenewer:
    principal_type: str = wire(String)
    principal_name: str = wire(String)


@wired
class DescribedDelegationToken:
    principal_type: str = wire(String)
    principal_name: str = wire(String)
    token_requester_principal_type: str = wire(String, since=3, default="")
    token_requester_principal_name: str = wire(String, since=3, default="")
    issue_timestamp: int = wire(Int64)
    expiry_timestamp: int = wire(Int64)
    max_timestamp: int = wire(Int64)
    token_id: str = wire(String)
    hmac: bytes = wire(Blob)
    renewers: tuple[DescribedDelegationTokenRenewer, ...] = wire(Array(DescribedDelegationTokenRenewer), default=())


@wired
class DescribeDelegationTokenResponse:
    KEY, VERSIONS, FLEXIBLE = 41, range(1, 4), 2

    error_code: int = wire(Int16, default=0)
    tokens: tuple[DescribedDelegationToken, ...] = wire(Array(DescribedDelegationToken), default=())
    throttle_time_ms: int = wire(Int32, default=0)
