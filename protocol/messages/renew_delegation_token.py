"""RenewDelegationToken, key 39, versions 1-2.

v2 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Blob, Int16, Int32, Int64, wire, wired


@wired
class RenewDelegationTokenRequest:
    """Renew a token by its HMAC. `renew_period_ms`: -1 for the broker's default."""

    KEY, VERSIONS, FLEXIBLE = 39, range(1, 3), 2

    hmac: bytes = wire(Blob)
    renew_period_ms: int = wire(Int64)


@wired
class RenewDelegationTokenResponse:
    KEY, VERSIONS, FLEXIBLE = 39, range(1, 3), 2

    error_code: int = wire(Int16, default=0)
    expiry_timestamp_ms: int = wire(Int64, default=-1)
    throttle_time_ms: int = wire(Int32, default=0)
