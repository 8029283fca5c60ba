"""`/api/client-metrics` of a live broker."""

from __future__ import annotations

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from tests.unit.coordinator.observe.test_otlp import metrics
from tests.unit.coordinator.web.conftest import World

from rota.coordinator.metadata.changes import ConfigKind
from rota.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from rota.protocol.messages.push_telemetry import PushTelemetryRequest
from rota.protocol.wire import UUID_ZERO


def nan() -> bytes:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="record-send-rate")
    metric.gauge.data_points.add(as_double=float("nan"))
    return bytes(data.SerializeToString())


async def test_clients_and_their_values_are_shown(world: World) -> None:
    configs = {"metrics": "*", "interval.ms": "100"}
    await world.broker.topics.configs.update(ConfigKind.CLIENT_METRICS, "all", lambda _: configs)
    response = await world.kafka.send_request(GetTelemetrySubscriptionsRequest(client_instance_id=UUID_ZERO), 0)
    request = PushTelemetryRequest(
        client_instance_id=response.client_instance_id,
        subscription_id=response.subscription_id,
        terminating=False,
        compression_type=0,
        metrics=metrics() + nan(),
    )
    assert (await world.kafka.send_request(request, 0)).error_code == 0
    shown = await world.read("/api/client-metrics")
    assert shown["subscriptions"] == [{"name": "all", "configs": configs}]
    (instance,) = shown["instances"]
    values = await world.read(f"/api/client-metrics/values?instance={instance['client_instance_id']}")
    assert [point["value"] for point in values["points"]] == [0, 1.5, "nan"]
    assert values["remark"] == ""


async def test_an_unknown_instance(world: World) -> None:
    await world.read("/api/client-metrics/values?instance=x", 400)
    await world.read("/api/client-metrics/values?instance=AAAAAAAAAAAAAAAAAAAAAA", 404)
