"""AlterConfigs, key 33, versions 0-2.

v1 throttle time only · v2 flexible

Replaces all configs of a resource: a config that is not in the request returns to its default. Resources are topics,
this broker or, with an empty name, all brokers, groups, and client metrics subscriptions.

Law
    BC13 A resource or a config that is named twice, and then a config without a value, are refused before it is asked
        whether there is such a resource.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
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
Outcome = tuple[R, Refusal | None]


def alter_configs(node: Node, call: Call, request: AlterConfigsRequest) -> DelayedReply[AlterConfigsResponse]:
    """Return one result for each resource."""
    return eager_tasks.start(_alter_all(node, request))


async def _alter_all(node: Node, request: AlterConfigsRequest) -> AlterConfigsResponse:
    async def alter(resource: AlterConfigsResource) -> Refusal | None:
        return await alter_target(node, resource, _replaced, request.validate_only)

    checked = check_each(request.resources, lambda config: config.value is None)
    outcomes = await alter_each(checked, alter)
    return AlterConfigsResponse(responses=tuple(result(resource, refusal) for resource, refusal in outcomes))


def _replaced(resource: AlterConfigsResource, target: Target, before: Mapping[str, str]) -> Configs | Refusal:
    configs = {config.name: config.value for config in resource.configs if config.value is not None}
    return target.check(configs, configs, set(target.present()) - configs.keys()) or configs


# ---- shared with IncrementalAlterConfigs


def check_each(resources: Sequence[R], lacks_value: Callable[[Any], bool]) -> list[Outcome[R]]:
    """Return each resource with what can be said against it without a look at what it names, or None (BC13)."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    def check(resource: R) -> Refusal | None:
        if times[resource.resource_type, resource.resource_name] > 1:
            return Refusal(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        if max(Counter(config.name for config in resource.configs).values(), default=0) > 1:
            return Refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        empty = ", ".join(config.name for config in resource.configs if lacks_value(config))
        return Refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {empty}") if empty else None

    return [(resource, check(resource)) for resource in resources]


async def alter_each(
    checked: Iterable[Outcome[R]], alter: Callable[[R], Coroutine[Any, Any, Refusal | None]]
) -> list[Outcome[R]]:
    """Alter those that are not refused yet; return each resource with its error or None."""

    async def alter_one(checked: Outcome[R]) -> Outcome[R]:
        resource, refusal = checked
        return resource, refusal or await alter(resource)

    return await eager_tasks.gather(map(alter_one, checked))


def result(resource: Resource, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    """Return the result of one resource."""
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message or None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


async def alter_target(node: Node, resource: R, altered: Alter[R], validate_only: bool) -> Refusal | None:
    """Write the configs that `altered` returns from the resource and the old ones, or return its refusal."""
    target = target_of(node, resource)
    if isinstance(target, Refusal):
        return target
    outcome = altered(resource, target, target.before())
    if isinstance(outcome, Refusal) or validate_only:
        return outcome if isinstance(outcome, Refusal) else None
    return await refuse_failure(target.write(lambda before: altered(resource, target, before)))
