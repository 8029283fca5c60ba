"""DescribeClientQuotas, key 48, versions 0-1.

v0 quotas of users, client ids and addresses (KIP-546) · v1 flexible
"""

from __future__ import annotations

from rota.protocol.wire import Array, Bool, Float64, Int8, Int16, Int32, String, wire, wired


@wired
class ComponentData:
    """`match_type`: 0 the name in `match`, 1 the default of the type, 2 any name."""

    entity_type: str = wire(String)
    match_type: int = wire(Int8)
    match: str | None = wire(String, nullable_since=0, default=None)


@wired
class DescribeClientQuotasRequest:
    """Ask for the quotas of entities. `strict`: entities with further types are left out."""

    KEY, VERSIONS, FLEXIBLE = 48, range(2), 1

    components: tuple[ComponentData, ...] = wire(Array(ComponentData), default=())
    strict: bool = wire(Bool, default=False)


@wired
class EntityData:
    """`entity_name` None: the default of the type."""

    entity_type: str = wire(String)
    entity_name: str | None = wire(String, nullable_since=0, default=None)


@wired
class ValueData:
    key: str = wire(String)
    value: float = wire(Float64)


@wired
class EntryData:
    entity: tuple[EntityData, ...] = wire(Array(EntityData), default=())
    values: tuple[ValueData, ...] = wire(Array(ValueData), default=())


@wired
class DescribeClientQuotasResponse:
    """The quotas of each entity; `entries` None with an error."""

    KEY, VERSIONS, FLEXIBLE = 48, range(2), 1

    throttle_time_ms: int = wire(Int32, default=0)
    error_code: int = wire(Int16, default=0)
    error_message: str | None = wire(String, nullable_since=0, default=None)
    entries: tuple[EntryData, ...] | None = wire(Array(EntryData), nullable_since=0, default=())
