"""Heartbeat, key 12, versions 0-4.

v1 throttle time · v3 static members (KIP-345) · v4 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Int16, Int32, String, wire, wired


@wired
class HeartbeatRequest:
    """A member keeps its session alive."""

    KEY, VERSIONS, FLEXIBLE = 12, range(5), 4

    group_id: str = wire(String)
    generation_id: int = wire(Int32)
    member_id: str = wire(String)
    group_instance_id: str | None = wire(String, since=3, nullable_since=3, default=None)


@wired
class HeartbeatResponse:
    """A member joins again when `error_code` is REBALANCE_IN_PROGRESS."""

    KEY, VERSIONS, FLEXIBLE = 12, range(5), 4

    throttle_time_ms: int = wire(Int32, since=1, default=0)
    error_code: int = wire(Int16, default=0)
