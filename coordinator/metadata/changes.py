"""The changes of the cluster that listeners of `Image.on_change` receive: logs open, leaders move, groups rebalance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.topic import Topic


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
    | PartitionsChanged
    | BrokersChanged
    | ControllerChanged
)
