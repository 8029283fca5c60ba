"""Configurations of topics and brokers: described, and changed one by one (KIP-339).

Laws
    What is not named in a change stays as it is; AlterConfigs, which replaces everything, is never sent.
    A broker is asked about itself; anything else may be asked of any broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Final, Self

from rota.client.admin.asking import Deadline, settle, side_by_side
from rota.client.admin.outcomes import Answer, Asked, Outcomes, Place
from rota.client.errors import IllegalUse
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode, Controller, Node, Target
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
    """What has a configuration, as the wire numbers it."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from, as the wire numbers it."""

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
    """The type of a value, as the wire numbers it (KIP-569)."""

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
    """Whose configuration: `ConfigResource.topic("orders")`, `ConfigResource.broker(0)`; a broker without a name
    stands for the default of all brokers."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> Self:
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node: int | None) -> Self:
        """None: what holds for all brokers."""
        return cls(ResourceType.BROKER, "" if node is None else str(node))

    def __str__(self) -> str:
        return f"{self.type.name.lower()} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """Where else a value is set; the first that is set counts."""

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
    """What happens to a setting, as the wire numbers it."""

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
Described = Iterable[Answer[ConfigResource, Entries]]
Altered = Iterable[Answer[ConfigResource, None]]


async def describe_configs(
    cluster: Cluster,
    resources: Iterable[ConfigResource],
    deadline: Deadline,
    *,
    keys: Iterable[str] | None,
    synonyms: bool,
    documentation: bool,
) -> dict[ConfigResource, Entries]:
    """Of each resource the settings by name: those in `keys`, or all. Raises AdminFailed."""
    wanted = None if keys is None else tuple(keys)
    outcomes = Outcomes[ConfigResource, Entries]("describing configs", 32, resources, _place, remedies=REMEDIES)

    def build(asked: Sequence[ConfigResource]) -> DescribeConfigsRequest:
        return DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(resource_type=one.type, resource_name=one.name, configuration_keys=wanted)
                for one in asked
            ),
            include_synonyms=synonyms,
            include_documentation=documentation,
        )

    def read(_: Asked[ConfigResource], answer: DescribeConfigsResponse) -> Described:
        for one in answer.results:
            entries = {entry.name: _entry(entry) for entry in one.configs}
            yield Answer(_resource(one.resource_type, one.resource_name), one.error_code, entries, one.error_message)

    await side_by_side(
        partial(settle, cluster, target, outcomes, build, read, deadline, among=among)
        for target, among in _by_target(outcomes.open(), AnyNode()).items()
    )
    return outcomes.results()


async def alter_configs(
    cluster: Cluster, changes: Mapping[ConfigResource, Changes], deadline: Deadline, *, validate_only: bool
) -> None:
    """Raises AdminFailed: of one resource all changes are made or none."""
    outcomes = Outcomes[ConfigResource, None]("altering configs", 44, changes, _place, remedies=REMEDIES)

    def build(asked: Sequence[ConfigResource]) -> IncrementalAlterConfigsRequest:
        altered = tuple(_altered(one, changes[one]) for one in asked)
        return IncrementalAlterConfigsRequest(resources=altered, validate_only=validate_only)

    def read(_: Asked[ConfigResource], answer: IncrementalAlterConfigsResponse) -> Altered:
        for one in answer.responses:
            yield Answer(_resource(one.resource_type, one.resource_name), one.error_code, None, one.error_message)

    await side_by_side(
        partial(settle, cluster, target, outcomes, build, read, deadline, among=among)
        for target, among in _by_target(outcomes.open(), Controller()).items()
    )
    outcomes.results()


def _by_target(resources: Iterable[ConfigResource], elsewhere: Target) -> dict[Target, list[ConfigResource]]:
    """Each broker that is asked about itself, and one place for all the rest."""
    found: dict[Target, list[ConfigResource]] = {}
    for one in resources:
        found.setdefault(_target(one, elsewhere), []).append(one)
    return found


def _target(resource: ConfigResource, elsewhere: Target) -> Target:
    if resource.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
        return elsewhere
    if not resource.name.isdecimal():
        raise IllegalUse(f"{resource}: a broker is named by its number, as in ConfigResource.broker(0)")
    return Node(int(resource.name))


def _resource(kind: int, name: str) -> ConfigResource:
    return ConfigResource(ResourceType(kind), name)


def _place(resource: ConfigResource) -> Place:
    return Place(topic=resource.name) if resource.type is ResourceType.TOPIC else Place(broker=resource.name)


def _entry(one: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        one.name,
        one.value,
        ConfigSource(one.config_source),
        one.read_only,
        one.is_sensitive,
        ConfigType(one.config_type),
        one.documentation or None,
        tuple(ConfigSynonym(also.name, also.value, ConfigSource(also.source)) for also in one.synonyms),
    )


def _altered(resource: ConfigResource, changes: Changes) -> AlterConfigsResource:
    made = ((name, _change(given)) for name, given in changes.items())
    configs = tuple(
        AlterableConfig(name=name, config_operation=change.operation, value=change.value) for name, change in made
    )
    return AlterConfigsResource(resource_type=resource.type, resource_name=resource.name, configs=configs)


def _change(given: ConfigChange | str | int | bool | None) -> ConfigChange:
    if isinstance(given, ConfigChange):
        return given
    if given is None:
        return ConfigChange.delete()
    return ConfigChange.set(str(given).lower() if isinstance(given, bool) else str(given))
