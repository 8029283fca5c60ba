"""DescribeCluster, key 60, versions 0-2 (KIP-700).

v1 endpoint type (KIP-919) · v2 fenced brokers (KIP-1073)
"""

from __future__ import annotations

from rota.coordinator.api.endpoints import BrokerAddress, controller_id, live_addresses
from rota.coordinator.api.node import Call, Node
from rota.coordinator.security.operations import ALL_OPERATIONS, NOT_REQUESTED, ResourceType
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


def describe_cluster(node: Node, call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Return the cluster's id, its controller and its brokers."""
    if request.endpoint_type == CONTROLLERS:
        why = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        return _refused(ErrorCode.MISMATCHED_ENDPOINT_TYPE, why)
    if request.endpoint_type != BROKERS:
        return _refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    with_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=node.topics.cluster_id,
        controller_id=controller_id(node),
        brokers=tuple(_broker(address) for address in live_addresses(node, call)),
        cluster_authorized_operations=ALL_OPERATIONS[ResourceType.CLUSTER] if with_operations else NOT_REQUESTED,
    )


def _refused(code: ErrorCode, why: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=why, cluster_id="")


def _broker(address: BrokerAddress) -> DescribeClusterBroker:
    return DescribeClusterBroker(broker_id=address.node_id, host=address.host, port=address.port, rack=address.rack)
