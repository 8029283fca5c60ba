"""DescribeClientQuotas, key 48, versions 0-1 (KIP-546).

v1 flexible

A filter has a component for each type of entity: a name, the default, or all of them. An entity matches if it matches
all components; with `strict` it has no other type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata.client_quotas import IP, SHOWN, SHOWN_OF_FOUR, TYPES, Entity, Quotas, all_quotas
from rota.coordinator.metadata.topic import Refusal
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

ANY: Final = 2  # 0 the name in `match`, 1 the default
_INVALID: Final = ErrorCode.INVALID_REQUEST
_COMBINATION: Final = (
    "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter"
    " component."
)


def describe_client_quotas(
    node: Node, call: Call, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Return the quotas of the entities that match the filter."""
    refusal = _refuse(request.components)
    if refusal is not None:
        return DescribeClientQuotasResponse(error_code=refusal.code, error_message=refusal.message, entries=None)
    matching = (each for each in all_quotas(node.topics) if _matches(each[0], request))
    return DescribeClientQuotasResponse(error_message="", entries=tuple(_entry(*each) for each in matching))


def _refuse(components: Sequence[ComponentData]) -> Refusal | None:
    types: set[str] = set()
    for component in components:
        refusal = _refuse_component(component, types)
        if refusal is not None:
            return refusal
        types.add(component.entity_type)
    return Refusal(_INVALID, _COMBINATION) if IP in types and len(types) > 1 else None


def _refuse_component(component: ComponentData, before: set[str]) -> Refusal | None:
    entity_type, has_name = component.entity_type, component.match is not None
    if not entity_type:
        return Refusal(_INVALID, "Invalid empty entity type.")
    if entity_type in before:
        return Refusal(_INVALID, f"Entity type {entity_type} cannot appear more than once in the filter.")
    if entity_type not in TYPES:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {entity_type}")
    match component.match_type, has_name:
        case (0, False):
            return Refusal(_INVALID, "Request specified MATCH_TYPE_EXACT, but set match string to null.")
        case (1, True):
            return Refusal(_INVALID, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.")
        case (2, True):
            return Refusal(_INVALID, "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.")
        case ((0 | 1 | 2), _):
            return None
    return Refusal(_INVALID, f"Unknown match type {component.match_type}")


def _matches(entity: Entity, request: DescribeClientQuotasRequest) -> bool:
    names = dict(entity)
    if request.strict and len(names) != len(request.components):
        return False
    return all(
        component.entity_type in names and _matches_name(names[component.entity_type], component)
        for component in request.components
    )


def _matches_name(name: str | None, component: ComponentData) -> bool:
    """Return whether a name, None for the default, is the one of the component; ANY is the default, too."""
    return component.match_type == ANY or name == component.match


def _entry(entity: Entity, quotas: Quotas) -> EntryData:
    order = SHOWN_OF_FOUR if quotas.keys() == set(SHOWN_OF_FOUR) else SHOWN  # Kafka's hash map has grown then
    values = sorted(quotas.items(), key=lambda item: order.index(item[0]))
    return EntryData(
        entity=tuple(EntityData(entity_type=each, entity_name=name) for each, name in entity),
        values=tuple(ValueData(key=key, value=value) for key, value in values),
    )
