"""IncrementalAlterConfigs, key 44, versions 0-1 (KIP-339).

v1 flexible

Changes only the named configs of a resource: set, delete (back to the default), append to or subtract from a list. The
resources are those of AlterConfigs, and the loggers of this broker.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.coordinator.api.alter_configs import alter_each, alter_target
from rota.coordinator.api.broker_loggers import alter_loggers
from rota.coordinator.api.config_targets import APPEND, DELETE, SET, SUBTRACT, Configs, Target
from rota.coordinator.api.describe_configs import BROKER_LOGGER
from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_configs import AlterConfigsResourceResponse
from rota.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def incremental_alter_configs(
    node: Node, call: Call, request: IncrementalAlterConfigsRequest
) -> DelayedReply[IncrementalAlterConfigsResponse]:
    """Return one result for each resource."""
    return eager_tasks.start(_alter_all(node, request))


async def _alter_all(node: Node, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    async def alter(resource: AlterConfigsResource) -> Refusal | None:
        if resource.resource_type == BROKER_LOGGER:
            return alter_loggers(node, resource, request.validate_only)
        return await alter_target(node, resource, _altered, request.validate_only)

    outcomes = await alter_each(request.resources, alter)
    return IncrementalAlterConfigsResponse(
        responses=tuple(_response(resource, refusal) for resource, refusal in outcomes)
    )


def _response(resource: AlterConfigsResource, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _altered(resource: AlterConfigsResource, target: Target, before: Mapping[str, str]) -> Configs | Refusal:
    configs = dict(before)
    for change in resource.configs:
        refusal = _refuse(target, change)
        if refusal is not None:
            return refusal
        _perform(target, change, configs)
    deleted = {change.name for change in resource.configs if change.config_operation == DELETE}
    names = [change.name for change in resource.configs if change.name not in deleted]
    return target.check(configs, names, deleted) or configs


def _refuse(target: Target, change: AlterableConfig) -> Refusal | None:
    if change.config_operation not in (SET, DELETE, APPEND, SUBTRACT):
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.config_operation}")
    if change.config_operation == DELETE:
        return None
    if change.value is None:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {change.name}")
    return (
        None if change.config_operation == SET else target.refuse_list_operation(change.name, change.config_operation)
    )


def _perform(target: Target, change: AlterableConfig, configs: Configs) -> None:
    if change.config_operation == DELETE:
        configs.pop(change.name, None)
        return
    value = change.value or ""
    if change.config_operation == SET:
        configs[change.name] = value
        return
    items = _items(target.in_force(change.name, configs))
    if change.config_operation == APPEND:
        items += [item for item in _items(value) if item not in items]
    else:
        items = [item for item in items if item not in _items(value)]
    configs[change.name] = ",".join(items)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
