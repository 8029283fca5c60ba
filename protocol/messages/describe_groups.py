"""DescribeGroups, key 15, versions 0-6.

v1 throttle time · v3 authorized operations (KIP-430) · v4 static members (KIP-345) · v5 flexible
v6 GROUP_ID_NOT_FOUND, with a message (KIP-1043)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Blob, Bool, Int16, Int32, String, wire, wired


@wired
class DescribeGroupsRequest:
    """Ask for state, members and assignments of groups."""

    KEY, VERSIONS, FLEXIBLE = 15, range(7), 5

    groups: tuple[str, ...] = wire(Array(String), default=())
    include_authorized_operations: bool = wire(Bool, since=3, default=False)


@wired
class DescribedGroupMember:
    member_id: str = wire(String)
    group_instance_id: str | None = wire(String, since=4, nullable_since=4, default=None)
    client_id: str = wire(String)
    client_host: str = wire(String)
    member_metadata: bytes = wire(Blob)
    member_assignment: bytes = wire(Blob)


@wired
class DescribedGroup:
    """An unknown group is in state Dead, up to v5 without an error code."""

    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, since=6, nullable_since=6, default=None)
    group_id: str = wire(String)
    group_state: str = wire(String, default="")
    protocol_type: str = wire(String, default="")
    protocol_data: str = wire(String, default="")
    members: tuple[DescribedGroupMember, ...] = wire(Array(DescribedGroupMember), default=())
    authorized_operations: int = wire(Int32, since=3, default=-2147483648)


@wired
class DescribeGroupsResponse:
    """One result for each group."""

    KEY, VERSIONS, FLEXIBLE = 15, range(7), 5

    throttle_time_ms: int = wire(Int32, since=1, default=0)
    groups: tuple[DescribedGroup, ...] = wire(Array(DescribedGroup), default=())
