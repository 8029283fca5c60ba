"""DescribeCluster, key 60, versions 0-2.

v0 flexible (KIP-700) · v1 brokers or controllers (KIP-919) · v2 fenced brokers (KIP-1073)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Int8, Int16, Int32, String, wire, wired


@wired
class DescribeClusterRequest:
    """Ask for the brokers of the cluster."""

    KEY, VERSIONS, FLEXIBLE = 60, range(3), 0

    include_cluster_authorized_operations: bool = wire(Bool, default=False)
    endpoint_type: int = wire(Int8, since=1, default=1)
    include_fenced_brokers: bool = wire(Bool, since=2, default=False)


@wired
class DescribeClusterBroker:
    broker_id: int = wire(Int32)
    host: str = wire(String)
    port: int = wire(Int32)
    rack: str | None = wire(String, nullable_since=0, default=None)
    is_fenced: bool = wire(Bool, since=2, default=False)


@wired
class DescribeClusterResponse:
    """Cluster id, controller and brokers."""

    KEY, VERSIONS, FLEXIBLE = 60, range(3), 0

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    endpoint_type: int = wire(Int8, since=1, default=1)
    cluster_id: str = wire(String)
    controller_id: int = wire(Int32, default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = wire(Array(DescribeClusterBroker), default=())
    cluster_authorized_operations: int = wire(Int32, default=-2147483648)
