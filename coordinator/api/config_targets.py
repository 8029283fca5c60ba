"""What AlterConfigs and IncrementalAlterConfigs change: the configs of a topic, a broker, a group, a subscription.

A target checks new configs and writes them. The error codes and texts are Kafka's, which differ between the types.

Laws
    BC12 New configs of a topic are checked before it is asked whether the topic exists.
    BC6 min.insync.replicas of all brokers is not removed, and that of one broker not set.
    SC6 Key and trust stores that cannot be used are refused, and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Final, Protocol

from rota.coordinator.api.describe_configs import BROKER, CLIENT_METRICS, GROUP, TOPIC, refuse_broker
from rota.coordinator.api.node import Node
from rota.coordinator.config.broker import MIN_ISR, BrokerConfig, definition_of
from rota.coordinator.config.client_metrics import SUBSCRIPTIONS_MAX, InvalidSubscription, check_client_metrics
from rota.coordinator.config.definition import ConfigRefused, Definition, Type
from rota.coordinator.config.dependent_values import check_dependent_values
from rota.coordinator.config.dynamic import check_dynamic, check_topics, check_value, usable
from rota.coordinator.config.group import check_group
from rota.coordinator.config.topic import TopicConfig, usable_topic
from rota.coordinator.config.topic_properties import TOPIC as TOPIC_CONFIGS
from rota.coordinator.metadata.changes import DEFAULT_NAME, ConfigKind
from rota.coordinator.metadata.topic import Refusal, Topic
from rota.coordinator.metadata.topic_names import refuse_name
from rota.protocol.errors import ErrorCode

SET, DELETE, APPEND, SUBTRACT = OPERATIONS = range(4)  # of IncrementalAlterConfigs (KIP-339)
WORDS: Final = {APPEND: "append", SUBTRACT: "subtract"}  # those on a list

Configs = dict[str, str]
Update = Callable[[Mapping[str, str]], Configs | Refusal]


class Entry(Protocol):
    """One config to set, of either API."""

    name: str
    value: str | None


class Resource(Protocol):
    """A resource with configs, of either API."""

    resource_type: int
    resource_name: str

    @property
    def configs(self) -> Iterable[Entry]: ...


class Target(Protocol):
    """The configs of one resource."""

    def before(self) -> Mapping[str, str]:
        """Return its own configs, as the image has them."""

    def present(self) -> Collection[str]:
        """Return the names of its own configs, and of those that it always has."""

    def refuse_list_operation(self, name: str, operation: int) -> Refusal | None:
        """Return an error unless items may be added to this config and removed from it."""

    def in_force(self, name: str, configs: Configs) -> str:
        """Return the value that items are added to or removed from."""

    def check(self, configs: Configs, names: Iterable[str], removed: Container[str]) -> Refusal | None:
        """Check the new configs, of which `names` are set by the request, and which `removed` of the old ones."""

    async def write(self, update: Update) -> Refusal | None:
        """Replace the configs by what `update` returns for those in the store. Raises StoreFailed."""


def target_of(node: Node, resource: Resource) -> Target | Refusal:
    """Return the target that the resource names, or why there is none."""
    name, kind = resource.resource_name, resource.resource_type
    if kind == TOPIC:
        return _topic_target(node, name)
    if kind == BROKER:
        return (refuse_broker(node, name, noun="Node") if name else None) or BrokerTarget(node, name)
    if kind == GROUP:
        missing = Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        return GroupTarget(node, name) if name else missing
    if kind == CLIENT_METRICS:
        missing = Refusal(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
        return ClientMetricsTarget(node, name) if name else missing
    return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def _topic_target(node: Node, name: str) -> Target | Refusal:
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    return refuse_name(name) or TopicTarget(node, name, node.topics.get(name))


class TopicTarget:
    """A topic, which may be unknown (None): every config may change."""

    def __init__(self, node: Node, name: str, topic: Topic | None) -> None:
        self._node, self._name, self._topic = node, name, topic

    def before(self) -> Mapping[str, str]:
        return {} if self._topic is None else self._topic.configs

    def present(self) -> Collection[str]:
        return self.before()

    def refuse_list_operation(self, name: str, operation: int) -> Refusal | None:
        definition = TOPIC_CONFIGS.get(name)
        is_list = definition is not None and definition.type is Type.LIST
        return None if is_list else _not_a_list(name, operation)

    def in_force(self, name: str, configs: Configs) -> str:
        return usable_topic(configs, self._node.config)[0].text(name)

    def check(self, configs: Configs, names: Iterable[str], removed: Container[str]) -> Refusal | None:
        try:
            TopicConfig(configs, self._node.config)
        except ConfigRefused as refused:
            return Refusal(ErrorCode.INVALID_CONFIG, str(refused))
        missing = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{self._name}' does not exist.")
        return missing if self._topic is None else None

    async def write(self, update: Update) -> Refusal | None:
        outcome = await self._node.topics.update_config(self._name, update)
        return outcome if isinstance(outcome, Refusal) else None


class BrokerTarget:
    """This broker, or with an empty name the defaults of all brokers."""

    def __init__(self, node: Node, name: str) -> None:
        self._node, self._name = node, str(node.config.node_id) if name else DEFAULT_NAME

    def before(self) -> Mapping[str, str]:
        return self._node.topics.resource_configs(ConfigKind.BROKERS, self._name)

    def present(self) -> Collection[str]:
        return {*self.before(), MIN_ISR} if self._name == DEFAULT_NAME else self.before()

    def refuse_list_operation(self, name: str, operation: int) -> Refusal | None:
        definition = self._definition(name)
        if isinstance(definition, Refusal) or definition.type is Type.LIST:
            return definition if isinstance(definition, Refusal) else None
        why = f"Config value {WORDS[operation]} is not allowed for config key: {name}"
        return Refusal(ErrorCode.INVALID_CONFIG, why)

    def in_force(self, name: str, configs: Configs) -> str:
        return configs.get(name, definition_of(name).default or "")

    def check(self, configs: Configs, names: Iterable[str], removed: Container[str]) -> Refusal | None:
        names, config = list(names), self._node.config
        try:
            check_dynamic(names, of_all_brokers=self._name == DEFAULT_NAME)
            for name in names:
                check_value(name, configs[name])
            used, _ = usable({name: text for name, text in configs.items() if name not in names})
            used.update((name, configs[name]) for name in names)
            topics = ((topic.name, topic.configs) for topic in self._node.topics)
            changed = self._with(used)
            check_dependent_values(changed, self._with_stored())
            check_topics(changed, topics, config)
            _check_tls(changed, config)
        except ConfigRefused as refused:
            return Refusal(ErrorCode.INVALID_REQUEST, str(refused))
        return self._refuse_min_isr(names, removed)

    def _with(self, used: Configs) -> BrokerConfig:
        config = self._node.config
        if self._name == DEFAULT_NAME:
            return config.with_dynamic(used, config.dynamic)
        return config.with_dynamic(config.dynamic_defaults, used)

    def _with_stored(self) -> BrokerConfig:
        """Return the configuration with all that is stored, also with what is ignored as it does not fit."""
        try:
            return self._with(usable(self.before())[0])
        except ConfigRefused:
            return self._node.config

    def _refuse_min_isr(self, names: Iterable[str], removed: Container[str]) -> Refusal | None:
        """BC6. A broker's own value, which earlier releases accepted, can be removed."""
        if self._name == DEFAULT_NAME:
            why = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            return Refusal(ErrorCode.INVALID_CONFIG, why) if MIN_ISR in removed else None
        if MIN_ISR in names or (MIN_ISR in removed and MIN_ISR not in self.before()):
            why = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            return Refusal(ErrorCode.INVALID_CONFIG, why)
        return None

    async def write(self, update: Update) -> Refusal | None:
        return await self._node.topics.configs.update(ConfigKind.BROKERS, self._name, update)

    def _definition(self, name: str) -> Definition | Refusal:
        try:
            return definition_of(name)
        except ConfigRefused as refused:
            return Refusal(ErrorCode.INVALID_REQUEST, str(refused))


def _check_tls(changed: BrokerConfig, current: BrokerConfig) -> None:
    """SC6. Read the key and trust stores of the listeners whose properties change. Raises ConfigRefused."""
    before = [*current.security.values(), current.http_security]
    for security in (*changed.security.values(), changed.http_security):
        if security.has_tls and security not in before:
            from rota.coordinator.security.tls import ListenerTls  # SC4

            ListenerTls(security)


class _ResourceTarget:
    """A resource whose lists Kafka changes as a whole only."""

    kind: ConfigKind

    def __init__(self, node: Node, name: str) -> None:
        self._node, self._name = node, name

    def before(self) -> Mapping[str, str]:
        return self._node.topics.resource_configs(self.kind, self._name)

    def present(self) -> Collection[str]:
        return self.before()

    def refuse_list_operation(self, name: str, operation: int) -> Refusal | None:
        return _not_a_list(name, operation)

    def in_force(self, name: str, configs: Configs) -> str:
        return configs.get(name, "")

    async def write(self, update: Update) -> Refusal | None:
        return await self._node.topics.configs.update(self.kind, self._name, update)


class GroupTarget(_ResourceTarget):
    """A group, which need not exist."""

    kind = ConfigKind.GROUPS

    def check(self, configs: Configs, names: Iterable[str], removed: Container[str]) -> Refusal | None:
        try:
            check_group(configs, self._node.config)
        except ConfigRefused as refused:
            return Refusal(ErrorCode.INVALID_CONFIG, str(refused))
        return None


class ClientMetricsTarget(_ResourceTarget):
    """A client metrics subscription, which its first config creates."""

    kind = ConfigKind.CLIENT_METRICS

    def check(self, configs: Configs, names: Iterable[str], removed: Container[str]) -> Refusal | None:
        known = self._node.topics.configured(self.kind)
        if self._name not in known and len(known) >= SUBSCRIPTIONS_MAX:
            return Refusal(ErrorCode.POLICY_VIOLATION, f"There are {SUBSCRIPTIONS_MAX} client metrics subscriptions")
        try:
            check_client_metrics(configs)
        except InvalidSubscription as refused:
            return Refusal(ErrorCode.INVALID_REQUEST, str(refused))
        except ConfigRefused as refused:
            return Refusal(ErrorCode.INVALID_CONFIG, str(refused))
        return None


def _not_a_list(name: str, operation: int) -> Refusal:
    why = f"Can't {WORDS[operation].upper()} to key {name} because its type is not LIST."
    return Refusal(ErrorCode.INVALID_CONFIG, why)
