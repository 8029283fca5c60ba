"""CreateAcls, key 30, versions 1-3.

v2 flexible · v3 user resources (KIP-373)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int8, Int16, Int32, String, wire, wired


@wired
class AclCreation:
    resource_type: int = wire(Int8)
    resource_name: str = wire(String)
    resource_pattern_type: int = wire(Int8, default=3)
    principal: str = wire(String)
    host: str = wire(String)
    operation: int = wire(Int8)
    permission_type: int = wire(Int8)


@wired
class CreateAclsRequest:
    """Create ACLs."""

    KEY, VERSIONS, FLEXIBLE = 30, range(1, 4), 2

    creations: tuple[AclCreation, ...] = wire(Array(AclCreation), default=())


@wired
class AclCreationResult:
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)


@wired
class CreateAclsResponse:
    """One result for each ACL, in the order of the request."""

    KEY, VERSIONS, FLEXIBLE = 30, range(1, 4), 2

    throttle_time_ms: int = wire(Int32, default=0)
    results: tuple[AclCreationResult, ...] = wire(Array(AclCreationResult), default=())
