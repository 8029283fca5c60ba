"""AlterClientQuotas, key 49, versions 0-1 (KIP-546).

v1 flexible

The quotas of an entity change together or not at all. Of an entity that is named twice the first change counts, and the
response has an error, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.timeout import refuse_failure
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.client_quotas import (
    ALL_KEYS,
    Entity,
    entity_of,
    entity_text,
    node_of,
    quota_text,
    refuse_entity,
    refuse_quota,
)
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryResult,
    OpData,
)


def alter_client_quotas(
    node: Node, call: Call, request: AlterClientQuotasRequest
) -> DelayedReply[AlterClientQuotasResponse]:
    """Return one result for each entity."""
    return eager_tasks.start(_alter_all(node, request))


async def _alter_all(node: Node, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    results: dict[Entity, Refusal | None] = {}
    for entry in request.entries:
        entity = entity_of({each.entity_type: each.entity_name for each in entry.entity})
        if entity in results or _names_a_key_twice(entry):
            results[entity] = Refusal(ErrorCode.INVALID_REQUEST, f"Ignoring duplicate entity {entity_text(entity)}")
        else:
            results[entity] = await _alter(node, entity, entry.ops, validate_only=request.validate_only)
    return AlterClientQuotasResponse(entries=tuple(_result(*each) for each in results.items()))


def _names_a_key_twice(entry: EntryData) -> bool:
    return len({op.key for op in entry.ops}) < len(entry.ops)


async def _alter(node: Node, entity: Entity, ops: Sequence[OpData], *, validate_only: bool) -> Refusal | None:
    refusal = refuse_entity(entity)
    for op in ops:
        if refusal is None and not op.remove:
            refusal = refuse_quota(entity, op.key, op.value)
    if refusal is not None or validate_only or not ops:
        return refusal
    return await refuse_failure(node.topics.configs.update(*node_of(entity), partial(_altered, ops)))


def _altered(ops: Sequence[OpData], before: Mapping[str, str]) -> dict[str, str]:
    removed = {op.key for op in ops if op.remove}
    after = {key: text for key, text in before.items() if key not in removed or key not in ALL_KEYS}  # no credentials
    return after | {op.key: quota_text(op.key, op.value) for op in ops if not op.remove}


def _result(entity: Entity, refusal: Refusal | None) -> EntryResult:
    result = EntryResult(entity=tuple(EntityData(entity_type=each, entity_name=name) for each, name in entity))
    if refusal is not None:
        result.error_code, result.error_message = refusal.code, refusal.message
    return result
