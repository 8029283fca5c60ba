"""IncrementalAlterConfigs, key 44, versions 0-1 (KIP-339).

v1 flexible

Changes only the named configs of a topic: set, delete (back to the default), append to or subtract from a list. A
broker's settings come from its file and do not change while it runs; asking for it is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.coordinator.api.alter_configs import Configs, alter_each
from rota.coordinator.api.node import Call, Node
from rota.coordinator.config.definition import Type, unknown_config
from rota.coordinator.config.topic import TopicConfig
from rota.coordinator.config.topic_properties import TOPIC as TOPIC_CONFIGS
from rota.coordinator.metadata import eager
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

SET, DELETE, APPEND, SUBTRACT = range(4)


def incremental_alter_configs(
    node: Node, call: Call, request: IncrementalAlterConfigsRequest
) -> DelayedReply[IncrementalAlterConfigsResponse]:
    """Return one result for each resource."""
    return eager.start(_alter_all(node, request))


async def _alter_all(node: Node, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    def altered(resource: AlterConfigsResource, before: Mapping[str, str]) -> Configs | Refusal:
        return _altered(node, resource, before)

    outcomes = await alter_each(node, request.resources, altered, request.validate_only)
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


def _altered(node: Node, resource: AlterConfigsResource, before: Mapping[str, str]) -> Configs | Refusal:
    configs = dict(before)
    for change in resource.configs:
        refusal = _refuse(change)
        if refusal is not None:
            return refusal
        _perform(node, change, configs)
    return configs


def _refuse(change: AlterableConfig) -> Refusal | None:
    if change.config_operation not in (SET, DELETE, APPEND, SUBTRACT):
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown config operation {change.config_operation}")
    if change.config_operation == DELETE:
        return None
    if change.value is None:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {change.name}")
    definition = TOPIC_CONFIGS.get(change.name)
    if definition is None:
        return Refusal(ErrorCode.INVALID_CONFIG, str(unknown_config(change.name, TOPIC_CONFIGS, "topic")))
    if change.config_operation != SET and definition.type is not Type.LIST:
        word = "APPEND" if change.config_operation == APPEND else "SUBTRACT"
        why = f"Can't {word} to key {change.name} because its type is not LIST."
        return Refusal(ErrorCode.INVALID_CONFIG, why)
    return None


def _perform(node: Node, change: AlterableConfig, configs: Configs) -> None:
    if change.config_operation == DELETE:
        configs.pop(change.name, None)
        return
    value = change.value or ""
    if change.config_operation == SET:
        configs[change.name] = value
        return
    items = _items(_in_force(node, change.name, configs))
    if change.config_operation == APPEND:
        items += [item for item in _items(value) if item not in items]
    else:
        items = [item for item in items if item not in _items(value)]
    configs[change.name] = ",".join(items)


def _in_force(node: Node, name: str, configs: Configs) -> str:
    return TopicConfig(configs, node.config).text(name)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
