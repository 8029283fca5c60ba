"""DescribeAcls, key 29, versions 1-3.

v2 flexible · v3 user resources (KIP-373)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int8, Int16, Int32, String, wire, wired


@wired
class DescribeAclsRequest:
    """Ask for the ACLs that match a filter. A null name, principal or host matches any."""

    KEY, VERSIONS, FLEXIBLE = 29, range(1, 4), 2

    resource_type_filter: int = wire(Int8)
    resource_name_filter: str | None = wire(String, nullable_since=0)
    pattern_type_filter: int = wire(Int8, default=3)
    principal_filter: str | None = wire(String, nullable_since=0)
    host_filter: str | None = wire(String, nullable_since=0)
    operation: int = wire(Int8)
    permission_type: int = wire(Int8)


@wired
class AclDescription:
    principal: str = wire(String)
    host: str = wire(String)
    operation: int = wire(Int8)
    permission_type: int = wire(Int8)


@wired
class DescribeAclsResource:
    resource_type: int = wire(Int8)
    resource_name: str = wire(String)
    pattern_type: int = wire(Int8, default=3)
    acls: tuple[AclDescription, ...] = wire(Array(AclDescription), default=())


@wired
class DescribeAclsResponse:
    """The ACLs, by the pattern of their resources."""

    KEY, VERSIONS, FLEXIBLE = 29, range(1, 4), 2

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    resources: tuple[DescribeAclsResource, ...] = wire(Array(DescribeAclsResource), default=())
