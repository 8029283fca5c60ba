"""DescribeCluster, key 60, versions 0-2 (KIP-700).

v1 endpoint type (KIP-919) · v2 fenced brokers (KIP-1073)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rota.coordinator.api.endpoints import BrokerAddress, controller_id, live_addresses, registered_address
from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.registration import last_registrations
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.operations import ALL_OPERATIONS, NOT_REQUESTED, ResourceType
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


def describe_cluster(
    node: Node, call: Call, request: DescribeClusterRequest
) -> DescribeClusterResponse | DelayedReply[DescribeClusterResponse]:
    """Return the cluster's id, its controller and its brokers; on request also those that are down (RG2)."""
    if request.endpoint_type == CONTROLLERS:
        why = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        return _refused(ErrorCode.MISMATCHED_ENDPOINT_TYPE, why)
    if request.endpoint_type != BROKERS:
        return _refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    if request.include_fenced_brokers and node.topics.absent_brokers():
        return eager_tasks.start(_describe_all(node, call, request))
    return _described(node, request, _live(node, call))


async def _describe_all(node: Node, call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    try:
        down = await last_registrations(node.topics.store, sorted(node.topics.absent_brokers()))
    except StoreFailed as failure:
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))
    brokers = {broker.broker_id: broker for broker in (*_fenced(down, call), *_live(node, call))}
    return _described(node, request, [brokers[broker_id] for broker_id in sorted(brokers)])


def _described(
    node: Node, request: DescribeClusterRequest, brokers: Iterable[DescribeClusterBroker]
) -> DescribeClusterResponse:
    with_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=node.topics.cluster_id,
        controller_id=controller_id(node),
        brokers=tuple(brokers),
        cluster_authorized_operations=ALL_OPERATIONS[ResourceType.CLUSTER] if with_operations else NOT_REQUESTED,
    )


def _live(node: Node, call: Call) -> Iterator[DescribeClusterBroker]:
    return (_broker(address) for address in live_addresses(node, call))


def _fenced(down: Iterable[BrokerRegistration], call: Call) -> Iterator[DescribeClusterBroker]:
    for registration in down:
        address = registered_address(registration, call)
        if address is not None:
            yield _broker(address, is_fenced=True)


def _refused(code: ErrorCode, why: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=why, cluster_id="")


def _broker(address: BrokerAddress, *, is_fenced: bool = False) -> DescribeClusterBroker:
    broker_id, host, port, rack = address
    return DescribeClusterBroker(broker_id=broker_id, host=host, port=port, rack=rack, is_fenced=is_fenced)
