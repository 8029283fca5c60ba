"""SyncGroup, key 14, versions 0-5.

v1 throttle time · v3 static members (KIP-345) · v4 flexible · v5 protocol type and name (KIP-559)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Blob, Int16, Int32, String, wire, wired


@wired
class SyncGroupRequestAssignment:
    member_id: str = wire(String)
    assignment: bytes = wire(Blob)


@wired
class SyncGroupRequest:
    """The leader sends all assignments; every member requests its own."""

    KEY, VERSIONS, FLEXIBLE = 14, range(6), 4

    group_id: str = wire(String)
    generation_id: int = wire(Int32)
    member_id: str = wire(String)
    group_instance_id: str | None = wire(String, since=3, nullable_since=3, default=None)
    protocol_type: str | None = wire(String, since=5, nullable_since=5, default=None)
    protocol_name: str | None = wire(String, since=5, nullable_since=5, default=None)
    assignments: tuple[SyncGroupRequestAssignment, ...] = wire(Array(SyncGroupRequestAssignment), default=())


@wired
class SyncGroupResponse:
    """This member's assignment, as `consumer_protocol` encodes it."""

    KEY, VERSIONS, FLEXIBLE = 14, range(6), 4

    throttle_time_ms: int = wire(Int32, since=1, default=0)
    error_code: int = wire(Int16, default=0)
    protocol_type: str | None = wire(String, since=5, nullable_since=5, default=None)
    protocol_name: str | None = wire(String, since=5, nullable_since=5, default=None)
    assignment: bytes = wire(Blob, default=b"")
