"""AlterClientQuotas, key 49, versions 0-1.

v0 quotas of users, client ids and addresses (KIP-546) · v1 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Float64, Int16, Int32, String, wire, wired


@wired
class EntityData:
    """`entity_name` None: the default of the type."""

    entity_type: str = wire(String)
    entity_name: str | None = wire(String, nullable_since=0, default=None)


@wired
class OpData:
    """One quota to set, or to `remove`."""

    key: str = wire(String)
    value: float = wire(Float64)
    remove: bool = wire(Bool, default=False)


@wired
class EntryData:
    entity: tuple[EntityData, ...] = wire(Array(EntityData), default=())
    ops: tuple[OpData, ...] = wire(Array(OpData), default=())


@wired
class AlterClientQuotasRequest:
    """Change the quotas of entities. `validate_only`: check them, and change nothing."""

    KEY, VERSIONS, FLEXIBLE = 49, range(2), 1

    entries: tuple[EntryData, ...] = wire(Array(EntryData), default=())
    validate_only: bool = wire(Bool, default=False)


@wired
class EntryResult:
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    entity: tuple[EntityData, ...] = wire(Array(EntityData), default=())


@wired
class AlterClientQuotasResponse:
    """The result of each entity."""

    KEY, VERSIONS, FLEXIBLE = 49, range(2), 1

    throttle_time_ms: int = wire(Int32, default=0)
    entries: tuple[EntryResult, ...] = wire(Array(EntryResult), default=())
