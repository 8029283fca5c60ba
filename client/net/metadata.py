"""What is known of a cluster at one moment: brokers, topics, who leads. An immutable value; pure.

Laws
    A partition's leader is taken over only from an answer whose leader epoch is not older (KIP-320), unless the topic
    has a new id: then it is another topic of that name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rota.client.types import PartitionInfo, TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """Where a broker listens."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.id} ({self.host}:{self.port})"


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic and its partitions, by number. `error` is the code with which a broker spoke of it, 0 for none."""

    name: str
    id: bytes
    is_internal: bool
    partitions: dict[int, PartitionInfo]
    error: int = 0


@dataclass(frozen=True, slots=True)
class Metadata:
    """Brokers by id, topics by name. `version` grows with each change; `at` is the loop's time of the answer."""

    version: int = 0
    at: float = 0.0
    cluster_id: str | None = None
    controller: int = -1
    brokers: dict[int, BrokerInfo] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)

    def partitions(self, topic: str) -> tuple[int, ...] | None:
        """The partition numbers in order; None when the topic is not known."""
        found = self.topics.get(topic)
        return tuple(sorted(found.partitions)) if found is not None and found.partitions else None

    def info(self, partition: TopicPartition) -> PartitionInfo | None:
        found = self.topics.get(partition.topic)
        return found.partitions.get(partition.partition) if found is not None else None

    def leader(self, partition: TopicPartition) -> int | None:
        """The node that leads, when there is one that is known."""
        found = self.info(partition)
        return found.leader if found is not None and found.leader in self.brokers else None

    def topic_id(self, topic: str) -> bytes | None:
        """The id of a topic, when brokers gave one."""
        found = self.topics.get(topic)
        return found.id if found is not None and any(found.id) else None

    def topic_name(self, topic_id: bytes) -> str | None:
        raise NotImplementedError
