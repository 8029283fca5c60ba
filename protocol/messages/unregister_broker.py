"""UnregisterBroker, key 64, version 0.

v0 flexible (KIP-631)
"""

from __future__ import annotations

from rota.protocol.wire import Int16, Int32, String, wire, wired


@wired
class UnregisterBrokerRequest:
    """Forget a broker that does not come back."""

    KEY, VERSIONS, FLEXIBLE = 64, range(1), 0

    broker_id: int = wire(Int32)


@wired
class UnregisterBrokerResponse:
    KEY, VERSIONS, FLEXIBLE = 64, range(1), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
