"""FindCoordinator, key 10, versions 0-6.

v1 key type, throttle time, error message · v3 flexible · v4 several keys in one request (KIP-699)
v5 TRANSACTION_ABORTABLE (KIP-890) · v6 share groups (KIP-932)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int8, Int16, Int32, String, wire, wired


@wired
class FindCoordinatorRequest:
    """Ask for the coordinator of groups (key type 0), transactional ids (1) or share groups (2)."""

    KEY, VERSIONS, FLEXIBLE = 10, range(7), 3

    key: str = wire(String, until=3, default="")
    key_type: int = wire(Int8, since=1, default=0)
    coordinator_keys: tuple[str, ...] = wire(Array(String), since=4, default=())


@wired
class Coordinator:
    """The result for one key; with an error the node id is -1, the host empty and the port -1."""

    key: str = wire(String)
    node_id: int = wire(Int32, default=-1)
    host: str = wire(String, default="")
    port: int = wire(Int32, default=-1)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)


@wired
class FindCoordinatorResponse:
    """v0-3 use the outer fields, v4 and later `coordinators`."""

    KEY, VERSIONS, FLEXIBLE = 10, range(7), 3

    throttle_time_ms: int = wire(Int32, since=1, default=0)
    error_code: int = wire(Int16, until=3, default=0)
    error_message: str | None = wire(String, since=1, until=3, nullable_since=1, default=None)
    node_id: int = wire(Int32, until=3, default=-1)
    host: str = wire(String, until=3, default="")
    port: int = wire(Int32, until=3, default=-1)
    coordinators: tuple[Coordinator, ...] = wire(Array(Coordinator), since=4, default=())
