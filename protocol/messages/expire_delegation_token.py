"""ExpireDelegationToken, key 40, versions 1-2.

v2 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Blob, Int16, Int32, Int64, wire, wired


@wired
class ExpireDelegationTokenRequest:
    """Let a token expire by its HMAC. `expiry_time_period_ms`: below 0 at once."""

    KEY, VERSIONS, FLEXIBLE = 40, range(1, 3), 2

    hmac: bytes = wire(Blob)
    expiry_time_period_ms: int = wire(Int64)


@wired
class ExpireDelegationTokenResponse:
    KEY, VERSIONS, FLEXIBLE = 40, range(1, 3), 2

    error_code: int = wire(Int16, default=0)
    expiry_timestamp_ms: int = wire(Int64, default=-1)
    throttle_time_ms: int = wire(Int32, default=0)
