"""The settings that a consumer group obeys, and what it sees of the rest of the broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Enum
from typing import Final

from rota.coordinator.consumer_group.topics import TopicDirectory, TopicMetadata
from rota.protocol.dataclass import dataclass

INT32_MAX: Final = 2**31 - 1


class MigrationPolicy(Enum):
    """Which groups with members may change their type; the value is that of the broker's property."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def is_upgrade_enabled(self) -> bool:
        """Return whether a classic group may become one of the consumer protocol."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def is_downgrade_enabled(self) -> bool:
        """Return whether a group of the consumer protocol may become a classic one."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupSettings:
    """Kafka 4.3's names without `group.consumer.`, and its defaults. The first assignor is the default one."""

    session_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    size_max: int = INT32_MAX
    assignors: tuple[str, ...] = ("uniform", "range")
    regex_refresh_ms: int = 600_000
    record_bytes_max: int = 1_048_588  # message.max.bytes: what the offsets topic takes as one batch
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


class NoTopics:
    """A directory without topics, for groups that are only described or replayed."""

    version = created_version = 0

    def get(self, name: str) -> TopicMetadata | None:
        return None

    def by_id(self, topic_id: bytes) -> TopicMetadata | None:
        return None

    def names(self) -> tuple[str, ...]:
        return ()


def default_settings(group_id: str) -> ConsumerGroupSettings:
    return ConsumerGroupSettings()


@dataclass(frozen=True, slots=True)
class Environment:
    """What is outside the group and changes: the topics, and the settings of the group of an id."""

    topics: TopicDirectory = field(default_factory=NoTopics)
    settings: Callable[[str], ConsumerGroupSettings] = default_settings
