"""PushTelemetry, key 72, version 0 (KIP-714).

Keeps the client's metrics in memory (`observe/client_telemetry`), where the broker's metrics pages show them.
"""

from __future__ import annotations

from rota.coordinator.api.get_telemetry_subscriptions import labels_of, subscription_for
from rota.coordinator.api.node import Call, Node
from rota.coordinator.observe.client_telemetry import Push
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from rota.protocol.wire import UUID_ZERO


def push_telemetry(node: Node, call: Call, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Accept the metrics, or return an error code."""
    instance_id = request.client_instance_id
    if instance_id == UUID_ZERO:
        return PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
    push = Push(
        subscription_id=request.subscription_id,
        terminating=request.terminating,
        compression_type=request.compression_type,
        metrics=request.metrics,
        bytes_max=node.config.telemetry_max_bytes,
        wall_ms=node.wall_ms(),
    )
    labels = labels_of(call, instance_id)
    subscription = subscription_for(node, instance_id, labels)
    return PushTelemetryResponse(error_code=node.telemetry.push(instance_id, labels, subscription, push, node.now_ms()))
