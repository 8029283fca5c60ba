from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.coordinator.api.data_world import World, answered

from rota.coordinator.api.describe_cluster import describe_cluster
from rota.coordinator.config.listeners import Endpoint
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.registration import Registration, remember
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_cluster import DescribeClusterRequest


def test_the_cluster_is_this_broker() -> None:
    world = World({"node.id": "7", "broker.rack": "r1"})
    reply = world.serve(describe_cluster, DescribeClusterRequest(), 2)
    assert (reply.error_code, reply.controller_id, reply.endpoint_type) == (0, 7, 1)
    assert reply.cluster_id == world.node.topics.cluster_id
    (broker,) = reply.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced) == (
        7,
        "127.0.0.1",
        9092,
        "r1",
        False,
    )
    assert reply.cluster_authorized_operations == -2147483648


def test_authorized_operations_are_returned_on_request() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert World().serve(describe_cluster, request, 0).cluster_authorized_operations == 8096


def test_brokers_that_are_down_are_described_on_request_if_they_have_replicas() -> None:
    """Law RG2."""
    world = World({"node.id": "7"})
    topics, request = world.node.topics, DescribeClusterRequest(include_fenced_brokers=True)
    for broker_id in (3, 4, 7):
        endpoint = Endpoint("PLAINTEXT", f"host-{broker_id}", 2)
        run_eagerly(remember(topics.store, broker_id, Registration([endpoint], rack="r"), wall_ms=0))
    topic = world.topic("t")
    (state,) = topic.partitions
    topics.apply_topic(replace(topic, partitions=(replace(state, replicas=(7, 3, 5)),)))
    assert world.node.topics.absent_brokers() == {3, 5}, "5 has never registered with this release"
    reply = answered(world.serve(describe_cluster, request, 2))
    assert [(each.broker_id, each.host, each.rack, each.is_fenced) for each in reply.brokers] == [
        (3, "host-3", "r", True),
        (7, "127.0.0.1", None, False),
    ]
    alone = world.serve(describe_cluster, DescribeClusterRequest(), 2)
    assert [each.broker_id for each in alone.brokers] == [7]
    run_eagerly(topics.store.set("/rota/brokers/3", b""))
    damaged = answered(world.serve(describe_cluster, request, 2))
    assert (damaged.error_code, [each.broker_id for each in damaged.brokers]) == (ErrorCode.NONE, [7])


@pytest.mark.parametrize(
    ("endpoint", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_other_endpoint_types_than_brokers_are_refused(endpoint: int, code: ErrorCode) -> None:
    reply = World().serve(describe_cluster, DescribeClusterRequest(endpoint_type=endpoint), 1)
    assert (reply.error_code, reply.cluster_id, reply.controller_id, reply.brokers) == (code, "", -1, ())
    assert reply.error_message
