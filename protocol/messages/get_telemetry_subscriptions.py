"""GetTelemetrySubscriptions, key 71, version 0.

v0 flexible (KIP-714)
"""

from __future__ import annotations

from rota.protocol.wire import UUID_ZERO, Array, Bool, Int8, Int16, Int32, String, Uuid, wire, wired


@wired
class GetTelemetrySubscriptionsRequest:
    """Ask which metrics to push. A client that has no instance id yet sends zero and gets one."""

    KEY, VERSIONS, FLEXIBLE = 71, range(1), 0

    client_instance_id: bytes = wire(Uuid)


@wired
class GetTelemetrySubscriptionsResponse:
    """The prefixes of the metrics to push, and how: no prefix means nothing, `*` means all."""

    KEY, VERSIONS, FLEXIBLE = 71, range(1), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    client_instance_id: bytes = wire(Uuid, default=UUID_ZERO)
    subscription_id: int = wire(Int32, default=0)
    accepted_compression_types: tuple[int, ...] = wire(Array(Int8), default=())
    push_interval_ms: int = wire(Int32, default=0)
    telemetry_max_bytes: int = wire(Int32, default=0)
    delta_temporality: bool = wire(Bool, default=False)
    requested_metrics: tuple[str, ...] = wire(Array(String), default=())
