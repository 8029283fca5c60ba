"""AlterConfigs, key 33, versions 0-2.

v1 throttle time only · v2 flexible

Replaces all configs of a topic: a config that is not in the request returns to its default. The settings of a broker
come from its file and do not change while it runs: a request to set one is refused. A request that sets none succeeds:
Kafka's reassignment tool ends with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from rota.coordinator.api.describe_configs import BROKER, TOPIC, refuse_broker
from rota.coordinator.api.node import Call, Node
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.topic import TopicConfig
from rota.coordinator.metadata import eager
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import Refusal, Topic
from rota.coordinator.metadata.topic_names import refuse_name
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

Configs = dict[str, str]


class Entry(Protocol):
    """One config to set, of this API or the incremental one."""

    name: str
    value: str | None


class Resource(Protocol):
    """A resource with configs, of this API or the incremental one."""

    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Iterable[Entry]: ...


R = TypeVar("R", bound=Resource)


def alter_configs(node: Node, call: Call, request: AlterConfigsRequest) -> DelayedReply[AlterConfigsResponse]:
    """Return one result for each resource."""
    return eager.start(_alter_all(node, request))


async def _alter_all(node: Node, request: AlterConfigsRequest) -> AlterConfigsResponse:
    outcomes = await alter_each(node, request.resources, _replaced, request.validate_only)
    return AlterConfigsResponse(responses=tuple(_response(resource, refusal) for resource, refusal in outcomes))


def _response(resource: AlterConfigsResource, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _replaced(resource: AlterConfigsResource, before: Mapping[str, str]) -> Configs | Refusal:
    empty = [config.name for config in resource.configs if config.value is None]
    if empty:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(empty)}")
    return {config.name: config.value for config in resource.configs if config.value is not None}


# ---- shared with IncrementalAlterConfigs


async def alter_each(
    node: Node,
    resources: Iterable[R],
    altered: Callable[[R, Mapping[str, str]], Configs | Refusal],
    validate_only: bool,
) -> list[tuple[R, Refusal | None]]:
    """Return each resource with its error or None. `altered` returns the new configs from the resource and the old."""
    resources = list(resources)
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    async def alter_one(resource: R) -> tuple[R, Refusal | None]:
        if times[resource.resource_type, resource.resource_name] > 1:
            return resource, Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        return resource, await _alter(node, resource, altered, validate_only)

    return await eager.gather(map(alter_one, resources))


async def _alter(
    node: Node, resource: R, altered: Callable[[R, Mapping[str, str]], Configs | Refusal], validate_only: bool
) -> Refusal | None:
    topic = _topic(node, resource)
    if isinstance(topic, Refusal):
        return topic
    if topic is None:
        return None if altered(resource, {}) == {} else _refuse_dynamic(resource)

    def checked(before: Mapping[str, str]) -> Configs | Refusal:
        configs = altered(resource, before)
        try:
            if not isinstance(configs, Refusal):
                TopicConfig(configs, node.config)
        except ConfigRefused as refused:
            return Refusal(ErrorCode.INVALID_CONFIG, str(refused))
        return configs

    outcome = checked(topic.configs)
    if isinstance(outcome, Refusal) or validate_only:
        return outcome if isinstance(outcome, Refusal) else None
    return await _refusal_of(node.topics.update_config(topic.name, checked))


async def _refusal_of(change: Awaitable[Topic | Refusal]) -> Refusal | None:
    try:
        outcome = await change
    except StoreFailed as failure:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))
    return outcome if isinstance(outcome, Refusal) else None


def _topic(node: Node, resource: Resource) -> Topic | Refusal | None:
    """Return the topic that the resource names; None for this broker or the defaults of all brokers."""
    names = Counter(config.name for config in resource.configs)
    if any(count > 1 for count in names.values()):
        return Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if resource.resource_type == BROKER:
        return refuse_broker(node, resource.resource_name) if resource.resource_name else None
    if resource.resource_type != TOPIC:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
    if not resource.resource_name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    missing = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.resource_name}' does not exist.")
    return node.topics.get(resource.resource_name) or refuse_name(resource.resource_name) or missing


def _refuse_dynamic(resource: Resource) -> Refusal:
    names = ", ".join(config.name for config in resource.configs)
    return Refusal(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{names}]")
