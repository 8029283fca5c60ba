"""DeleteGroups, key 42, versions 0-2.

v1 as v0 · v2 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, String, wire, wired


@wired
class DeleteGroupsRequest:
    """Delete groups, which must be empty."""

    KEY, VERSIONS, FLEXIBLE = 42, range(3), 2

    groups_names: tuple[str, ...] = wire(Array(String), default=())


@wired
class DeletableGroupResult:
    group_id: str = wire(String)
    error_code: int = wire(Int16, default=0)


@wired
class DeleteGroupsResponse:
    """One result for each group."""

    KEY, VERSIONS, FLEXIBLE = 42, range(3), 2

    throttle_time_ms: int = wire(Int32, default=0)
    results: tuple[DeletableGroupResult, ...] = wire(Array(DeletableGroupResult), default=())
