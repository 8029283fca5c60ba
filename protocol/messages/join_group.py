"""JoinGroup, key 11, versions 0-9.

v1 rebalance timeout · v2 throttle time · v4 MEMBER_ID_REQUIRED first (KIP-394) · v5 static members (KIP-345)
v6 flexible · v7 protocol type in the response (KIP-559) · v8 reason (KIP-800) · v9 skip assignment (KIP-814)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Blob, Bool, Int16, Int32, String, wire, wired


@wired
class JoinGroupRequestProtocol:
    """An assignor and the member's subscription, as `consumer_protocol` encodes it."""

    name: str = wire(String)
    metadata: bytes = wire(Blob)


@wired
class JoinGroupRequest:
    """A member joins the group with its assignors in order of preference."""

    KEY, VERSIONS, FLEXIBLE = 11, range(10), 6

    group_id: str = wire(String)
    session_timeout_ms: int = wire(Int32)
    rebalance_timeout_ms: int = wire(Int32, since=1, default=-1)
    member_id: str = wire(String)
    group_instance_id: str | None = wire(String, since=5, nullable_since=5, default=None)
    protocol_type: str = wire(String)
    protocols: tuple[JoinGroupRequestProtocol, ...] = wire(Array(JoinGroupRequestProtocol), default=())
    reason: str | None = wire(String, since=8, nullable_since=8, default=None)


@wired
class JoinGroupResponseMember:
    member_id: str = wire(String)
    group_instance_id: str | None = wire(String, since=5, nullable_since=5, default=None)
    metadata: bytes = wire(Blob)


@wired
class JoinGroupResponse:
    """The new generation; only its leader gets the members with their subscriptions."""

    KEY, VERSIONS, FLEXIBLE = 11, range(10), 6

    throttle_time_ms: int = wire(Int32, since=2, default=0)
    error_code: int = wire(Int16, default=0)
    generation_id: int = wire(Int32, default=-1)
    protocol_type: str | None = wire(String, since=7, nullable_since=7, default=None)
    protocol_name: str | None = wire(String, nullable_since=7, default="")
    leader: str = wire(String, default="")
    skip_assignment: bool = wire(Bool, since=9, default=False)
    member_id: str = wire(String, default="")
    members: tuple[JoinGroupResponseMember, ...] = wire(Array(JoinGroupResponseMember), default=())
