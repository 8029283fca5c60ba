"""`/api/client-metrics`: the clients that push metrics to this broker (KIP-714), and the values of one of them."""

from __future__ import annotations

from typing import Any

from rota.coordinator.metadata.changes import ConfigKind
from rota.coordinator.metadata.znodes import uuid_bytes
from rota.coordinator.observe.client_telemetry import ClientTelemetry, shown
from rota.coordinator.observe.otlp import decode
from rota.coordinator.web.broker_requests import ApiError
from rota.coordinator.web.site import Site


async def client_metrics(site: Site) -> dict[str, Any]:
    """Return the subscriptions and the clients that have requested them."""
    image, kind = site.node.topics, ConfigKind.CLIENT_METRICS
    subscriptions = [{"name": name, "configs": image.resource_configs(kind, name)} for name in image.configured(kind)]
    return {"subscriptions": subscriptions, **shown(site.node.telemetry)}


async def client_values(telemetry: ClientTelemetry, instance_id: str) -> dict[str, Any]:
    """Return the values of the last push of one client instance. Raises ApiError."""
    try:
        instance = telemetry.instances().get(uuid_bytes(instance_id))
    except ValueError:
        raise ApiError(400, "the parameter instance must be a client instance id") from None
    if instance is None:
        raise ApiError(404, f"this broker knows no client instance {instance_id}")
    points, why = decode(instance) if instance.push else ([], "the client has not pushed yet")
    return {"last_push_ms": instance.pushed_at_ms, "points": points, "remark": why}
