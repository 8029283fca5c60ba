"""One conversation about configs with any broker: what it answers, step by step.

Law
    Nothing here sleeps to wait: a step that shows a change asks again until the broker shows the value that was set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from tests.interop.differential.wire import Wire
from tests.interop.kit import until

from rota.protocol.messages.alter_configs import AlterableConfig as ReplacedConfig
from rota.protocol.messages.alter_configs import AlterConfigsRequest
from rota.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from rota.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rota.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from rota.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from rota.protocol.messages.list_config_resources import ListConfigResourcesRequest

Line = dict[str, Any]
Step = tuple[Any, ...]

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC_NAME = "config-story"


def alter(
    kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    """The request that makes `changes`: (config, operation, value)."""
    configs = tuple(AlterableConfig(name=key, config_operation=what, value=value) for key, what, value in changes)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)


def replace(kind: int, name: str, **configs: str) -> AlterConfigsRequest:
    """The request that replaces all configs. Names have underscores for dots."""
    items = tuple(ReplacedConfig(name=key.replace("_", "."), value=value) for key, value in configs.items())
    return AlterConfigsRequest(
        resources=(ReplacedResource(resource_type=kind, resource_name=name, configs=items),), validate_only=False
    )


def describe(kind: int, name: str, *keys: str) -> DescribeConfigsRequest:
    """The request that shows these configs, or all."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
    return DescribeConfigsRequest(resources=(resource,), include_synonyms=True)


def list_resources(*kinds: int) -> ListConfigResourcesRequest:
    """The request that lists the resources of these types."""
    return ListConfigResourcesRequest(resource_types=kinds)


VERSIONS = {32: 4, 33: 2, 44: 1, 74: 1}


def run_scenario(bootstrap: str) -> Iterator[Line]:
    """Play the conversation; yield each step's answer."""
    from tests.interop.config_apis.steps import CLEANING, STEPS

    wire = Wire(bootstrap, "config-story")
    try:
        topic = CreatableTopic(name=TOPIC_NAME, num_partitions=1, replication_factor=1)
        wire.send_request(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 7)
        for request in CLEANING:
            wire.send_request(request, VERSIONS[request.KEY])
        for chapter, steps in STEPS.items():
            for name, request, *shown in steps:
                yield {"chapter": chapter, "step": name, "answer": _answer(wire, request, shown)}
    finally:
        for request in CLEANING:
            wire.send_request(request, VERSIONS[request.KEY])
        wire.close()


def _answer(wire: Wire, request: Any, shown: list[Any]) -> Any:
    """The answer; with `shown` the first one that has these texts and, after a !, has them not."""
    answers: list[Any] = []

    def is_shown() -> bool:
        answers.append(plain(wire.send_request(request, VERSIONS[request.KEY])))
        answer = json.dumps(answers[-1])
        return all((text[1:] not in answer) if text.startswith("!") else (text in answer) for text in shown)

    until(is_shown, f"{shown} in the answer to {request}")
    return answers[-1]


def plain(value: Any) -> Any:
    """A message as JSON values, without documentation and throttle time; configs in the order of their names."""
    if is_dataclass(value):
        names = [each.name for each in fields(value) if each.name not in ("documentation", "throttle_time_ms")]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        items = [plain(item) for item in value]
        named = (
            items
            and isinstance(items[0], dict)
            and ("config_source" in items[0] or set(items[0]) == {"resource_name", "resource_type"})
        )
        return (
            sorted(
                items,
                key=lambda item: json.dumps([item.get("resource_type"), item.get("name"), item.get("resource_name")]),
            )
            if named
            else items
        )
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
