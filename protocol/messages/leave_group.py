"""LeaveGroup, key 13, versions 0-5.

v1 throttle time · v3 several members, also static members (KIP-345) · v4 flexible · v5 reason (KIP-800)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int16, Int32, String, wire, wired


@wired
class MemberIdentity:
    """An administrator removes a static member by its instance id and an empty `member_id`."""

    member_id: str = wire(String)
    group_instance_id: str | None = wire(String, nullable_since=0, default=None)
    reason: str | None = wire(String, since=5, nullable_since=5, default=None)


@wired
class LeaveGroupRequest:
    """v0-2 have one `member_id`, later versions `members`."""

    KEY, VERSIONS, FLEXIBLE = 13, range(6), 4

    group_id: str = wire(String)
    member_id: str = wire(String, until=2, default="")
    members: tuple[MemberIdentity, ...] = wire(Array(MemberIdentity), since=3, default=())


@wired
class MemberResponse:
    member_id: str = wire(String)
    group_instance_id: str | None = wire(String, nullable_since=0)
    error_code: int = wire(Int16, default=0)


@wired
class LeaveGroupResponse:
    """v3 and later have a result for each member."""

    KEY, VERSIONS, FLEXIBLE = 13, range(6), 4

    throttle_time_ms: int = wire(Int32, since=1, default=0)
    error_code: int = wire(Int16, default=0)
    members: tuple[MemberResponse, ...] = wire(Array(MemberResponse), since=3, default=())
