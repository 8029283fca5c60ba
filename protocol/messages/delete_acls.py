"""DeleteAcls, key 31, versions 1-3.

v2 flexible · v3 user resources (KIP-373)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int8, Int16, Int32, String, wire, wired


@wired
class DeleteAclsFilter:
    """A null name, principal or host matches any."""

    resource_type_filter: int = wire(Int8)
    resource_name_filter: str | None = wire(String, nullable_since=0)
    pattern_type_filter: int = wire(Int8, default=3)
    principal_filter: str | None = wire(String, nullable_since=0)
    host_filter: str | None = wire(String, nullable_since=0)
    operation: int = wire(Int8)
    permission_type: int = wire(Int8)


@wired
class DeleteAclsRequest:
    """Delete the ACLs that match any of the filters."""

    KEY, VERSIONS, FLEXIBLE = 31, range(1, 4), 2

    filters: tuple[DeleteAclsFilter, ...] = wire(Array(DeleteAclsFilter), default=())


@wired
class DeleteAclsMatchingAcl:
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    resource_type: int = wire(Int8)
    resource_name: str = wire(String)
    pattern_type: int = wire(Int8, default=3)
    principal: str = wire(String)
    host: str = wire(String)
    operation: int = wire(Int8)
    permission_type: int = wire(Int8)


@wired
class DeleteAclsFilterResult:
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = wire(Array(DeleteAclsMatchingAcl), default=())


@wired
class DeleteAclsResponse:
    """What each filter deleted, in the order of the request."""

    KEY, VERSIONS, FLEXIBLE = 31, range(1, 4), 2

    throttle_time_ms: int = wire(Int32, default=0)
    filter_results: tuple[DeleteAclsFilterResult, ...] = wire(Array(DeleteAclsFilterResult), default=())
