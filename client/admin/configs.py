"""DescribeConfigs and IncrementalAlterConfigs (KIP-339).

Laws
    Settings that a change does not name keep their values; AlterConfigs, which replaces all settings, is never sent.
    The configuration of a broker is requested from that broker; other descriptions come from any broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Final, Self

from rota.client.admin.call_results import CallResults, ErrorContext, KeyResult, SentRequest
from rota.client.admin.requests import Deadline, request_with_retries, run_concurrently
from rota.client.checks import wire_name
from rota.client.errors import IllegalUse
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode, Controller, Node, Target
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from rota.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

REMEDIES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check the name against list_topics().",
    ErrorCode.INVALID_CONFIG: "describe_configs() lists the names and their types.",
    ErrorCode.INVALID_REQUEST: "describe_configs() lists what can be changed.",
}


class ResourceType(IntEnum):
    """The types of resources that have a configuration, with their numbers in the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """The sources of a value, with their numbers in the protocol."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8

    @classmethod
    def _missing_(cls, value: object) -> ConfigSource:
        return cls.UNKNOWN


class ConfigType(IntEnum):
    """The types of values, with their numbers in the protocol (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @classmethod
    def _missing_(cls, value: object) -> ConfigType:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A resource that has a configuration: `ConfigResource.topic("orders")`, `ConfigResource.broker(0)`; a broker
    without a name stands for the default of all brokers."""

    type: ResourceType
    name: str

    def __post_init__(self) -> None:
        wire_name("name", self.name)

    @classmethod
    def topic(cls, name: str) -> Self:
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node: int | None) -> Self:
        """The configuration of a broker; None: the default of all brokers."""
        return cls(ResourceType.BROKER, "" if node is None else str(node))

    def __str__(self) -> str:
        return f"{self.type.name.lower()} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """Another place where the value is set; the first synonym that is set has effect."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting. `value` is None where it is sensitive or not set."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool = False
    is_sensitive: bool = False
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


class ConfigOperation(IntEnum):
    """The operations on a setting, with their numbers in the protocol."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One change: `ConfigChange.set("60000")`, `.delete()` (back to the default), and of a list `.append("compact")`,
    `.subtract("delete")`; several elements with commas."""

    operation: ConfigOperation
    value: str | None = None

    @classmethod
    def set(cls, value: str) -> Self:
        return cls(ConfigOperation.SET, value)

    @classmethod
    def delete(cls) -> Self:
        return cls(ConfigOperation.DELETE)

    @classmethod
    def append(cls, value: str) -> Self:
        return cls(ConfigOperation.APPEND, value)

    @classmethod
    def subtract(cls, value: str) -> Self:
        return cls(ConfigOperation.SUBTRACT, value)


Entries = dict[str, ConfigEntry]
Changes = Mapping[str, ConfigChange | str | int | bool | None]  # a plain value is set, None is deleted
Described = Iterable[KeyResult[ConfigResource, Entries]]
Altered = Iterable[KeyResult[ConfigResource, None]]


async def describe_configs(
    cluster: Cluster,
    resources: Iterable[ConfigResource],
    deadline: Deadline,
    *,
    keys: Iterable[str] | None,
    synonyms: bool,
    documentation: bool,
) -> dict[ConfigResource, Entries]:
    """Return the settings of each resource by name: those in `keys`, or all. Raises AdminFailed."""
    requested = None if keys is None else tuple(keys)
    results = CallResults[ConfigResource, Entries](
        "describing configs", 32, resources, _error_context, remedies=REMEDIES
    )

    def build(batch: Sequence[ConfigResource]) -> DescribeConfigsRequest:
        return DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(
                    resource_type=resource.type, resource_name=resource.name, configuration_keys=requested
                )
                for resource in batch
            ),
            include_synonyms=synonyms,
            include_documentation=documentation,
        )

    def read(_: SentRequest[ConfigResource], answer: DescribeConfigsResponse) -> Described:
        for result in answer.results:
            entries = {entry.name: _config_entry(entry) for entry in result.configs}
            yield KeyResult(
                _resource(result.resource_type, result.resource_name), result.error_code, entries, result.error_message
            )

    await run_concurrently(
        partial(request_with_retries, cluster, target, results, build, read, deadline, keys=keys)
        for target, keys in _group_by_target(results.pending(), AnyNode()).items()
    )
    return results.all_or_raise()


async def alter_configs(
    cluster: Cluster, changes: Mapping[ConfigResource, Changes], deadline: Deadline, *, validate_only: bool
) -> None:
    """Alter settings. Of one resource all changes are made or none. Raises AdminFailed."""
    results = CallResults[ConfigResource, None]("altering configs", 44, changes, _error_context, remedies=REMEDIES)

    def build(batch: Sequence[ConfigResource]) -> IncrementalAlterConfigsRequest:
        altered = tuple(_alter_resource(resource, changes[resource]) for resource in batch)
        return IncrementalAlterConfigsRequest(resources=altered, validate_only=validate_only)

    def read(_: SentRequest[ConfigResource], answer: IncrementalAlterConfigsResponse) -> Altered:
        for result in answer.responses:
            yield KeyResult(
                _resource(result.resource_type, result.resource_name), result.error_code, None, result.error_message
            )

    await run_concurrently(
        partial(request_with_retries, cluster, target, results, build, read, deadline, keys=keys)
        for target, keys in _group_by_target(results.pending(), Controller()).items()
    )
    results.all_or_raise()


def _group_by_target(resources: Iterable[ConfigResource], other_target: Target) -> dict[Target, list[ConfigResource]]:
    """Group the resources by target: brokers by their own id, all others under `other_target`."""
    found: dict[Target, list[ConfigResource]] = {}
    for resource in resources:
        found.setdefault(_target(resource, other_target), []).append(resource)
    return found


def _target(resource: ConfigResource, other_target: Target) -> Target:
    if resource.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
        return other_target
    if not resource.name.isdecimal():
        raise IllegalUse(f"{resource}: a broker is named by its number, as in ConfigResource.broker(0)")
    return Node(int(resource.name))


def _resource(kind: int, name: str) -> ConfigResource:
    return ConfigResource(ResourceType(kind), name)


def _error_context(resource: ConfigResource) -> ErrorContext:
    match resource.type:
        case ResourceType.TOPIC:
            return ErrorContext(topic=resource.name)
        case ResourceType.GROUP:
            return ErrorContext(group=resource.name)
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return ErrorContext(broker=resource.name or None)  # None: the default of all brokers
        case _:
            return ErrorContext()


def _config_entry(result: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        result.name,
        result.value,
        ConfigSource(result.config_source),
        result.read_only,
        result.is_sensitive,
        ConfigType(result.config_type),
        result.documentation or None,
        tuple(ConfigSynonym(also.name, also.value, ConfigSource(also.source)) for also in result.synonyms),
    )


def _alter_resource(resource: ConfigResource, changes: Changes) -> AlterConfigsResource:
    made = [(wire_name("the name of a setting", name), _config_change(given)) for name, given in changes.items()]
    for name, change in made:
        wire_name(f"the value of {name}", change.value or "")
    configs = tuple(
        AlterableConfig(name=name, config_operation=change.operation, value=change.value) for name, change in made
    )
    return AlterConfigsResource(resource_type=resource.type, resource_name=resource.name, configs=configs)


def _config_change(given: ConfigChange | str | int | bool | None) -> ConfigChange:
    if isinstance(given, ConfigChange):
        return given
    if given is None:
        return ConfigChange.delete()
    return ConfigChange.set(str(given).lower() if isinstance(given, bool) else str(given))
