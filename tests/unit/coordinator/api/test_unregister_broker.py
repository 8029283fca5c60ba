from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api.describe_cluster import describe_cluster
from rota.coordinator.api.unregister_broker import unregister_broker
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.registration import Registration, register, remember
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_cluster import DescribeClusterRequest
from rota.protocol.messages.unregister_broker import UnregisterBrokerRequest

HERE = Registration([Endpoint("PLAINTEXT", "host-3", 2)])


def world_with_a_stopped_broker() -> World:
    """Broker 3, which has a replica of a topic."""
    world = World({"node.id": "7"})
    run_eagerly(remember(world.node.topics.store, 3, HERE, wall_ms=0))
    topic = world.topic("t")
    (state,) = topic.partitions
    world.node.topics.apply_topic(replace(topic, partitions=(replace(state, replicas=(7, 3)),)))
    return world


def unregister(world: World, broker_id: int) -> Any:
    response = world.serve(unregister_broker, UnregisterBrokerRequest(broker_id=broker_id), 0)
    return (answered(response) if isinstance(response, DelayedReply) else response).error_code


def described(world: World) -> list[int]:
    response = world.serve(describe_cluster, DescribeClusterRequest(include_fenced_brokers=True), 2)
    return [broker.broker_id for broker in answered(response).brokers]


def test_a_broker_that_has_stopped_is_forgotten_once() -> None:
    world = world_with_a_stopped_broker()
    assert described(world) == [3, 7]
    assert unregister(world, 3) == ErrorCode.NONE
    assert described(world) == [7]
    assert unregister(world, 3) == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_was_never_here_is_unknown() -> None:
    for broker_id in (-1, 9):
        assert unregister(World(), broker_id) == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_runs_is_not_forgotten() -> None:
    """RG3. Also one that the image does not have yet."""
    world = world_with_a_stopped_broker()
    assert unregister(world, 7) == ErrorCode.INVALID_REQUEST
    run_eagerly(register(world.node.topics.store, 3, HERE, wall_ms=1))
    assert unregister(world, 3) == ErrorCode.INVALID_REQUEST
    assert described(world) == [3, 7]
