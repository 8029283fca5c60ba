"""PushTelemetry, key 72, version 0.

v0 flexible (KIP-714)
"""

from __future__ import annotations

from rota.protocol.wire import Blob, Bool, Int8, Int16, Int32, Uuid, wire, wired


@wired
class PushTelemetryRequest:
    """The metrics of a client: OpenTelemetry's MetricsData, compressed as `compression_type` says."""

    KEY, VERSIONS, FLEXIBLE = 72, range(1), 0

    client_instance_id: bytes = wire(Uuid)
    subscription_id: int = wire(Int32)
    terminating: bool = wire(Bool)
    compression_type: int = wire(Int8)
    metrics: bytes = wire(Blob)


@wired
class PushTelemetryResponse:
    """Whether the metrics were accepted."""

    KEY, VERSIONS, FLEXIBLE = 72, range(1), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
