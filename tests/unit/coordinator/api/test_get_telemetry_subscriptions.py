from __future__ import annotations

from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.get_telemetry_subscriptions import get_telemetry_subscriptions
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.changes import ConfigKind
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from rota.protocol.wire import UUID_ZERO


def send_request(world: World, instance_id: bytes = UUID_ZERO) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    response = world.serve(get_telemetry_subscriptions, request, 0)
    assert isinstance(response, GetTelemetrySubscriptionsResponse)
    return response


def test_a_client_gets_an_instance_id_and_the_subscribed_metrics() -> None:
    world = World({"telemetry.max.bytes": "1000"})
    configs = {"metrics": "org.apache.kafka.,a.", "interval.ms": "100"}
    eager_tasks.run_eagerly(world.node.topics.configs.update(ConfigKind.CLIENT_METRICS, "m", lambda _: configs))
    response = send_request(world)
    assert response.client_instance_id != UUID_ZERO
    assert response.requested_metrics == ("a.", "org.apache.kafka.")
    assert (response.push_interval_ms, response.telemetry_max_bytes, response.delta_temporality) == (100, 1000, True)
    assert response.accepted_compression_types == (4, 3, 1, 2)
    assert send_request(world, response.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_without_a_subscription_no_metrics_are_requested_and_the_interval_is_five_minutes() -> None:
    response = send_request(World())
    assert (response.error_code, response.requested_metrics, response.push_interval_ms) == (0, (), 300_000)


def test_a_stored_subscription_that_cannot_be_used_is_ignored() -> None:
    world = World()
    for name, configs in {
        "bad": {"metrics": "x.", "match": "client_id=("},
        "long": {"metrics": "y.", "interval.ms": "often"},
        "good": {"metrics": "a."},
        "other": {"metrics": "z.", "of": "a later release"},
    }.items():
        kind = ConfigKind.CLIENT_METRICS
        eager_tasks.run_eagerly(world.node.topics.configs.update(kind, name, lambda _, configs=configs: configs))  # type: ignore[misc]
    assert send_request(world).requested_metrics == ("a.",)
