"""GetTelemetrySubscriptions, key 71, version 0 (KIP-714).

Returns the metrics that the client shall push: those of all client metrics subscriptions that match it. A client
without an instance id gets one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from uuid import uuid4

import structlog

from rota.coordinator.api.node import Call, Node
from rota.coordinator.config.client_metrics import PARSED_MAX, check_client_metrics
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.znodes import uuid_text
from rota.coordinator.observe.client_telemetry import COMPRESSION_TYPES, Subscription, subscription_of
from rota.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from rota.protocol.wire import UUID_ZERO

log = structlog.get_logger("rota.config")


def get_telemetry_subscriptions(
    node: Node, call: Call, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Return the metrics and the interval of the client's pushes; THROTTLING_QUOTA_EXCEEDED for too early requests."""
    instance_id = request.client_instance_id if request.client_instance_id != UUID_ZERO else uuid4().bytes
    labels = labels_of(call, instance_id)
    subscription = subscription_for(node, instance_id, labels)
    code = node.telemetry.request(instance_id, labels, subscription, node.now_ms())
    return GetTelemetrySubscriptionsResponse(
        error_code=code,
        client_instance_id=instance_id,
        subscription_id=subscription.subscription_id,
        accepted_compression_types=COMPRESSION_TYPES,
        push_interval_ms=subscription.interval_ms,
        telemetry_max_bytes=node.config.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=subscription.metrics,
    )


def subscription_for(node: Node, instance_id: bytes, labels: Mapping[str, str]) -> Subscription:
    """Return the union of the subscriptions in the image that match this client instance."""
    kind, image = ConfigKind.CLIENT_METRICS, node.topics
    stored = ((name, image.resource_configs(kind, name)) for name in image.configured(kind))
    usable = [configs for name, configs in stored if _is_usable(name, tuple(configs.items()))]
    return subscription_of(instance_id, labels, usable)


@lru_cache(maxsize=PARSED_MAX)  # one warning, not one for each request
def _is_usable(name: str, configs: tuple[tuple[str, str], ...]) -> bool:
    try:
        check_client_metrics(dict(configs))
    except ConfigRefused as refused:
        log.warning("A client metrics subscription is ignored", name=name, reason=str(refused))
        return False
    return True


def labels_of(call: Call, instance_id: bytes) -> dict[str, str]:
    """Return the labels of a client that a subscription can match."""
    return {
        "client_instance_id": uuid_text(instance_id),
        "client_id": call.client_id,
        "client_software_name": call.software.name,
        "client_software_version": call.software.version,
        "client_source_address": call.client_host.removeprefix("/"),
        "client_source_port": str(call.client_port),
    }
