from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.api.describe_cluster import describe_cluster
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


@pytest.mark.parametrize(
    ("endpoint", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_other_endpoint_types_than_brokers_are_refused(endpoint: int, code: ErrorCode) -> None:
    reply = World().serve(describe_cluster, DescribeClusterRequest(endpoint_type=endpoint), 1)
    assert (reply.error_code, reply.cluster_id, reply.controller_id, reply.brokers) == (code, "", -1, ())
    assert reply.error_message
