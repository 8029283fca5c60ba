"""IncrementalAlterConfigs, key 44, versions 0-1 (KIP-339).

v1 flexible

Changes only the named configs of a resource: set, delete (back to the default), append to or subtract from a list. The
resources are those of AlterConfigs, and the loggers of this broker.

Law
    BC14 An unknown operation on a topic, a group or a subscription fails the request: it changes loggers alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.coordinator.api.alter_configs import alter_each, alter_target, check_each, result
from rota.coordinator.api.broker_loggers import alter_loggers
from rota.coordinator.api.config_targets import APPEND, DELETE, OPERATIONS, SET, Configs, Target
from rota.coordinator.api.describe_configs import BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_FAILED = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "")
_OF_CONTROLLER = (TOPIC, GROUP, CLIENT_METRICS)  # Kafka checks the operations of the others in the broker


def incremental_alter_configs(
    node: Node, call: Call, request: IncrementalAlterConfigsRequest
) -> DelayedReply[IncrementalAlterConfigsResponse]:
    """Return one result for each resource."""
    return eager_tasks.start(_alter_all(node, request))


async def _alter_all(node: Node, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    checked = check_each(request.resources, _lacks_value)
    fails = any(refusal is None and _fails(resource) for resource, refusal in checked)

    async def alter(resource: AlterConfigsResource) -> Refusal | None:
        if resource.resource_type == BROKER_LOGGER:
            return alter_loggers(node, resource, request.validate_only)
        if fails and resource.resource_type in _OF_CONTROLLER:
            return _FAILED
        refusal = await alter_target(node, resource, _altered, request.validate_only or fails)
        return _FAILED if fails and refusal is None else refusal

    outcomes = await alter_each(checked, alter)
    return IncrementalAlterConfigsResponse(responses=tuple(result(resource, refusal) for resource, refusal in outcomes))


def _lacks_value(change: AlterableConfig) -> bool:
    return change.value is None and change.config_operation != DELETE


def _fails(resource: AlterConfigsResource) -> bool:
    """BC14."""
    unknown = any(change.config_operation not in OPERATIONS for change in resource.configs)
    return unknown and resource.resource_type in _OF_CONTROLLER


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
    if change.config_operation not in OPERATIONS:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.config_operation}")
    is_of_list = change.config_operation not in (SET, DELETE)
    return target.refuse_list_operation(change.name, change.config_operation) if is_of_list else None


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
