"""FindCoordinator, key 10, versions 0-6.

v1 key type, throttle time, error message · v3 flexible · v4 many keys in one request (KIP-699)
v5 TRANSACTION_ABORTABLE (KIP-890) · v6 share groups (KIP-932)
"""

from __future__ import annotations

from rota.protocol.wire import Array, Int8, Int16, Int32, String, wire, wired


@wired
class FindCoordinatorRequest:
    """Who coordinates this group (key type 0), transaction (1) or share group (2)?"""

    KEY, VERSIONS, FLEXIBLE = 10, range(7), 3

    key: str = wire(String, until=3, default="")
    key_type: int = wire(Int8, since=1, default=0)
    coordinator_keys: tuple[str, ...] = wire(Array(String), since=4, default=())


@wired
class Coordinator:
    """The answer for one key; node -1, host empty and port -1 beside an error."""

    key: str = wire(String)
    node_id: int = wire(Int32, default=-1)
    host: str = wire(String, default="")
    port: int = wire(Int32, default=-1)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)


@wired
class FindCoordinatorResponse:
    """v0-3 answer in the outer fields, v4 and later in `coordinators`."""

    KEY, VERSIONS, FLEXIBLE = 10, range(7), 3

    throttle_time_ms: int = wire(Int32, since=1, default=0)
    error_code: int = wire(Int16, until=3, default=0)
    error_message: str | None = wire(String, since=1, until=3, nullable_since=1, default=None)
    node_id: int = wire(Int32, until=3, default=-1)
    host: str = wire(String, until=3, default="")
    port: int = wire(Int32, until=3, default=-1)
    coordinators: tuple[Coordinator, ...] = wire(Array(Coordinator), since=4, default=())
