"""ListGroups, key 16, versions 0-5.

v1 throttle time · v3 flexible · v4 by state (KIP-518) · v5 by type (KIP-848)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, String, wire, wired


@wired
class ListGroupsRequest:
    """Ask for the groups of this coordinator; an empty filter accepts all."""

    KEY, VERSIONS, FLEXIBLE = 16, range(6), 3

    states_filter: tuple[str, ...] = wire(Array(String), since=4, default=())
    types_filter: tuple[str, ...] = wire(Array(String), since=5, default=())


@wired
class ListedGroup:
    group_id: str = wire(String)
    protocol_type: str = wire(String)
    group_state: str = wire(String, since=4, default="")
    group_type: str = wire(String, since=5, default="")


@wired
class ListGroupsResponse:
    """The groups with their protocol type and, since v4, their state."""

    KEY, VERSIONS, FLEXIBLE = 16, range(6), 3

    throttle_time_ms: int = wire(Int32, since=1, default=0)
    error_code: int = wire(Int16, default=0)
    groups: tuple[ListedGroup, ...] = wire(Array(ListedGroup), default=())
