from __future__ import annotations

from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.get_telemetry_subscriptions import get_telemetry_subscriptions
from rota.coordinator.api.push_telemetry import push_telemetry
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from rota.protocol.messages.push_telemetry import PushTelemetryRequest
from rota.protocol.wire import UUID_ZERO


def push(world: World, instance_id: bytes, subscription_id: int, metrics: bytes = b"m") -> int:
    request = PushTelemetryRequest(
        client_instance_id=instance_id,
        subscription_id=subscription_id,
        terminating=False,
        compression_type=0,
        metrics=metrics,
    )
    code: int = world.serve(push_telemetry, request, 0).error_code
    return code


def test_a_push_is_kept() -> None:
    world = World({"telemetry.max.bytes": "10"})
    answer = world.serve(get_telemetry_subscriptions, GetTelemetrySubscriptionsRequest(client_instance_id=UUID_ZERO), 0)
    assert push(world, answer.client_instance_id, answer.subscription_id) == ErrorCode.NONE
    (instance,) = world.node.telemetry.instances().values()
    assert (instance.push, instance.pushes, instance.labels["client_software_name"]) == (b"m", 1, "unknown")


def test_invalid_requests_are_refused() -> None:
    world = World({"telemetry.max.bytes": "10"})
    assert push(world, UUID_ZERO, 0) == ErrorCode.INVALID_REQUEST
    answer = world.serve(get_telemetry_subscriptions, GetTelemetrySubscriptionsRequest(client_instance_id=UUID_ZERO), 0)
    too_large = b"m" * 11
    assert push(world, answer.client_instance_id, answer.subscription_id, too_large) == ErrorCode.TELEMETRY_TOO_LARGE
    assert push(world, b"2" * 16, 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
