"""AlterConfigs, key 33, versions 0-2.

v1 throttle time only · v2 flexible

Replaces all configs of a resource: a config that is not in the request returns to its default. Resources are topics,
this broker or, with an empty name, all brokers, groups, and client metrics subscriptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from rota.coordinator.api.config_targets import Configs, Resource, Target, target_of
from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.timeout import refuse_failure
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

R = TypeVar("R", bound=Resource)
Alter = Callable[[R, Target, Mapping[str, str]], Configs | Refusal]


def alter_configs(node: Node, call: Call, request: AlterConfigsRequest) -> DelayedReply[AlterConfigsResponse]:
    """Return one result for each resource."""
    return eager_tasks.start(_alter_all(node, request))


async def _alter_all(node: Node, request: AlterConfigsRequest) -> AlterConfigsResponse:
    async def alter(resource: AlterConfigsResource) -> Refusal | None:
        return await alter_target(node, resource, _replaced, request.validate_only)

    outcomes = await alter_each(request.resources, alter)
    return AlterConfigsResponse(responses=tuple(_response(resource, refusal) for resource, refusal in outcomes))


def _response(resource: AlterConfigsResource, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _replaced(resource: AlterConfigsResource, target: Target, before: Mapping[str, str]) -> Configs | Refusal:
    empty = [config.name for config in resource.configs if config.value is None]
    if empty:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(empty)}")
    configs = {config.name: config.value for config in resource.configs if config.value is not None}
    return target.check(configs, configs, set(target.present()) - configs.keys()) or configs


# ---- shared with IncrementalAlterConfigs


async def alter_each(
    resources: Iterable[R], alter: Callable[[R], Coroutine[Any, Any, Refusal | None]]
) -> list[tuple[R, Refusal | None]]:
    """Return each resource with its error or None."""
    resources = list(resources)
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    async def alter_one(resource: R) -> tuple[R, Refusal | None]:
        if times[resource.resource_type, resource.resource_name] > 1:
            return resource, Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        return resource, await alter(resource)

    return await eager_tasks.gather(map(alter_one, resources))


async def alter_target(node: Node, resource: R, altered: Alter[R], validate_only: bool) -> Refusal | None:
    """Write the configs that `altered` returns from the resource and the old ones, or return its refusal."""
    target = target_of(node, resource)
    if isinstance(target, Refusal):
        return target
    outcome = altered(resource, target, target.before())
    if isinstance(outcome, Refusal) or validate_only:
        return outcome if isinstance(outcome, Refusal) else None
    return await refuse_failure(target.write(lambda before: altered(resource, target, before)))
