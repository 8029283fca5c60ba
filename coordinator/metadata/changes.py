"""The changes of the cluster that listeners of `Image.on_change` receive: logs open, leaders move, groups rebalance."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.topic import Topic
from rota.protocol.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TopicCreated:
    topic: Topic


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """`topic` as it is now; the new partitions are those from index `before` on."""

    topic: Topic
    before: int


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """`topic` as it was."""

    topic: Topic


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    topic: Topic


class ConfigKind(StrEnum):
    """What has configs beside the topics. The values are the folders under /config."""

    BROKERS = "brokers"  # by node id, or DEFAULT_NAME for the defaults of all brokers
    GROUPS = "groups"
    CLIENT_METRICS = "client-metrics"  # subscriptions, by name
    ACLS = "acls"  # by resource pattern; each entry of the pattern is a name, without a value
    USERS = "users"  # SCRAM credentials and quotas, by user
    CLIENTS = "clients"  # quotas, by client id
    USER_CLIENTS = "user-clients"  # quotas, by user and client id
    IPS = "ips"  # quotas, by address


DEFAULT_NAME = "<default>"


@dataclass(frozen=True, slots=True)
class ResourceConfigChanged:
    """The own configs of a broker, of all brokers, of a group or of a client metrics subscription."""

    kind: ConfigKind
    name: str


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """Leader, epoch, ISR or replicas of these partitions changed, or whether this broker may lead them.

    `topic` is as it is now.
    """

    topic: Topic
    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """The live brokers, as they are now."""

    brokers: Mapping[int, BrokerRegistration]


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """The broker that is the controller now; None while there is none."""

    broker_id: int | None


Change = (
    TopicCreated
    | PartitionsAdded
    | TopicDeleted
    | ConfigChanged
    | ResourceConfigChanged
    | PartitionsChanged
    | BrokersChanged
    | ControllerChanged
)
