"""The changes of a topic that listeners of `Topics.on_change` receive: logs are opened, groups rebalance (R14)."""

from __future__ import annotations

from dataclasses import dataclass

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


Change = TopicCreated | PartitionsAdded | TopicDeleted | ConfigChanged
