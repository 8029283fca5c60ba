"""What consumer groups see of the broker: the topics of the image, and the settings of each group.

Laws
    GE1 `version` grows with every change that a group's metadata hash may see, and with no other.
    GE2 A group's own configs count before the broker's, and are cut to the broker's limits: these may have changed.
    A broker that is down keeps its rack: groups do not rebalance because a replica is away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Final

from rota.coordinator.config.broker import BrokerConfig
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.dependent_values import assignor_of
from rota.coordinator.config.group import limits_of, number_of
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, Environment, MigrationPolicy
from rota.coordinator.consumer_group.topics import TopicMetadata
from rota.coordinator.metadata.changes import (
    BrokersChanged,
    Change,
    ConfigKind,
    PartitionsAdded,
    PartitionsChanged,
    TopicCreated,
    TopicDeleted,
)
from rota.coordinator.metadata.image import Image
from rota.coordinator.metadata.topic import Topic

CACHED_SETTINGS_MAX: Final = 64
FIELDS: Final = {  # of the settings, by the name of a group's config
    "consumer.session.timeout.ms": "session_ms",
    "consumer.heartbeat.interval.ms": "heartbeat_interval_ms",
    "consumer.assignment.interval.ms": "assignment_interval_ms",
}


class ImageTopics:
    """The topics of the image, as a `TopicDirectory`."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self.version = self.created_version = 1
        self._racks: dict[int, str] = {}
        self._known: dict[str, TopicMetadata] = {}  # looked up since they changed
        self._take_racks()
        image.on_change(self._changed)

    def get(self, name: str) -> TopicMetadata | None:
        known = self._known.get(name)
        if known is None:
            topic = self._image.get(name)
            if topic is None:
                return None
            known = self._known[name] = self._metadata(topic)
        return known

    def by_id(self, topic_id: bytes) -> TopicMetadata | None:
        topic = self._image.by_id(topic_id)
        return None if topic is None else self.get(topic.name)

    def names(self) -> list[str]:
        return self._image.names()

    def _metadata(self, topic: Topic) -> TopicMetadata:
        racks = self._racks
        return TopicMetadata(
            topic.name,
            topic.topic_id,
            tuple(
                tuple(sorted(racks[broker] for broker in state.replicas if broker in racks)) if racks else ()
                for state in topic.partitions
            ),
        )

    def _take_racks(self) -> bool:
        before = dict(self._racks)
        self._racks |= {
            number: broker.rack for number, broker in self._image.brokers.items() if broker.rack is not None
        }
        return self._racks != before

    def _changed(self, change: Change) -> None:
        match change:
            case TopicCreated(topic):
                self._forget(topic)
                self.created_version = self.version
            case TopicDeleted(topic) | PartitionsAdded(topic, _):
                self._forget(topic)
            case PartitionsChanged(topic, _):
                known = self._known.get(topic.name)
                if known is not None and known != self._metadata(topic):
                    self._forget(topic)
            case BrokersChanged():
                if self._take_racks():
                    self._known.clear()
                    self.version += 1
            case _:
                pass

    def _forget(self, topic: Topic) -> None:
        self._known.pop(topic.name, None)
        self.version += 1


def environment(image: Image, config: BrokerConfig) -> Environment:
    """Return what the consumer groups of a broker see. `config` is read at each use."""
    return Environment(ImageTopics(image), settings_of(image, config))


def settings_of(image: Image, config: BrokerConfig) -> Callable[[str], ConsumerGroupSettings]:
    """Return the function that gives the settings of a group by its id."""

    def settings(group_id: str) -> ConsumerGroupSettings:
        defaults = _defaults(config)
        own = image.resource_configs(ConfigKind.GROUPS, group_id)
        return _with_own(defaults, own, config) if own else defaults

    return settings


def _defaults(config: BrokerConfig) -> ConsumerGroupSettings:
    return _settings(
        config.group_consumer_session_timeout_ms,
        config.group_consumer_heartbeat_interval_ms,
        config.group_consumer_assignment_interval_ms,
        config.group_consumer_max_size,
        config.group_consumer_assignors,
        config.message_max_bytes,
        config.group_consumer_migration_policy,
    )


@lru_cache(CACHED_SETTINGS_MAX)
def _settings(
    session_ms: int,
    heartbeat_interval_ms: int,
    assignment_interval_ms: int,
    size_max: int,
    assignors: tuple[str, ...],
    record_bytes_max: int,
    migration: str,
) -> ConsumerGroupSettings:
    return ConsumerGroupSettings(
        session_ms=session_ms,
        heartbeat_interval_ms=heartbeat_interval_ms,
        assignment_interval_ms=assignment_interval_ms,
        size_max=size_max,
        assignors=tuple(map(assignor_of, assignors)),
        record_bytes_max=record_bytes_max,
        migration=MigrationPolicy(migration),
    )


def _with_own(settings: ConsumerGroupSettings, own: Mapping[str, str], config: BrokerConfig) -> ConsumerGroupSettings:
    changes: dict[str, int] = {}
    for name, field in FIELDS.items():
        if name in own:
            low, high = limits_of(name, config)
            with suppress(ConfigRefused):  # BC4
                changes[field] = min(max(number_of(name, own[name]), low), high)
    return replace(settings, **changes)  # type: ignore[arg-type]
