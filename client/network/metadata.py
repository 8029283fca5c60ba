"""The cached metadata of a cluster: brokers, topics, leaders. An immutable value; pure.

Laws
    `version` increases if and only if brokers, controller, topics, partitions or leaders change.
    A partition's leader is replaced only by a response whose leader epoch is not older (KIP-320), unless the topic has
    a new id: then it is another topic of that name. Topics that are not requested any more, or whose response is an
    error, are removed with their leader epochs. A topic that a broker does not know keeps its id: it may have been
    deleted, and what was read of it does not belong to a later topic of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import Final, Protocol

from rota.client.types import PartitionInfo, TopicPartition, address_text
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

REFUSED: Final = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """The address of a broker."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        at = address_text(self.host, self.port)
        return f"{self.id} ({at})" if self.id >= 0 else at


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic and its partitions by number. `error` is its error code in the response, 0 for none."""

    name: str
    id: bytes
    is_internal: bool
    partitions: dict[int, PartitionInfo]
    error: int = 0

    @property
    def is_refused(self) -> bool:
        """Whether the same request for the topic cannot succeed: its name is invalid, or it is not allowed."""
        return self.error in REFUSED


@dataclass(frozen=True, slots=True)
class Metadata:
    """Brokers by id, topics by name. `version` increases with each change; `at` is the loop time of the response."""

    version: int = 0
    at: float = 0.0
    cluster_id: str | None = None
    controller: int = -1
    brokers: dict[int, BrokerInfo] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)
    _names: dict[bytes, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = {topic.id: topic.name for topic in self.topics.values() if any(topic.id)}
        object.__setattr__(self, "_names", names)

    def partitions(self, topic: str) -> tuple[int, ...] | None:
        """Return the partition numbers in order; None if the topic is not known."""
        found = self.topics.get(topic)
        return tuple(sorted(found.partitions)) if found is not None and found.partitions else None

    def info(self, partition: TopicPartition) -> PartitionInfo | None:
        found = self.topics.get(partition.topic)
        return found.partitions.get(partition.partition) if found is not None else None

    def leader(self, partition: TopicPartition) -> int | None:
        """Return the node id of the leader; None if it is not known."""
        found = self.info(partition)
        return found.leader if found is not None and found.leader in self.brokers else None

    def topic_id(self, topic: str) -> bytes | None:
        """Return the id of a topic; None if it is not known."""
        found = self.topics.get(topic)
        return found.id if found is not None and any(found.id) else None

    def has_topic(self, topic: str, topic_id: bytes | None) -> bool:
        """Return whether a broker knows this topic: it was not deleted, nor another one of its name created."""
        found = self.topics.get(topic)
        return found is not None and not found.error and found.id == topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with this id; None if it is not known."""
        return self._names.get(topic_id)

    def refused(self, topics: Iterable[str]) -> list[TopicInfo]:
        """Return those of the topics that are refused, in the order of their names."""
        known = (self.topics.get(name) for name in sorted(topics))
        return [topic for topic in known if topic is not None and topic.is_refused]

    def is_same(self, other: Metadata) -> bool:
        """Return whether both are equal apart from their version and time."""
        return (self.cluster_id, self.controller, self.brokers, self.topics) == (
            other.cluster_id,
            other.controller,
            other.brokers,
            other.topics,
        )


def updated_from(known: Metadata, answer: MetadataResponse, at: float) -> Metadata:
    """Return `known` updated from a Metadata response. Topics that are not in the response are dropped."""
    topics = {name: _topic(known.topics.get(name), name, topic) for name, topic in _named(known, answer)}
    made = Metadata(
        version=known.version,
        at=at,
        cluster_id=answer.cluster_id if answer.cluster_id is not None else known.cluster_id,
        controller=answer.controller_id,
        brokers={
            broker.node_id: BrokerInfo(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in answer.brokers
        },
        topics=topics,
    )
    return made if made.is_same(known) else replace(made, version=known.version + 1)


class Endpoint(Protocol):
    """The address of a node in a Produce or Fetch response."""

    node_id: int
    host: str
    port: int
    rack: str | None


def with_brokers(known: Metadata, brokers: Iterable[BrokerInfo]) -> Metadata:
    """Return `known` with the addresses of these brokers; `known` itself when nothing changes."""
    new = {broker.id: broker for broker in brokers if broker.id >= 0 and _moved(known.brokers.get(broker.id), broker)}
    return replace(known, version=known.version + 1, brokers={**known.brokers, **new}) if new else known


def with_leader(known: Metadata, partition: TopicPartition, leader: int, epoch: int) -> Metadata:
    """Return `known` with this leader of the partition (KIP-951); `known` itself unless the epoch is newer and the
    address of the leader is known."""
    topic, before = known.topics.get(partition.topic), known.info(partition)
    if topic is None or before is None or epoch <= before.leader_epoch or leader not in known.brokers:
        return known
    now = replace(before, leader=leader, leader_epoch=epoch)
    changed = replace(topic, partitions={**topic.partitions, partition.partition: now})
    return replace(known, version=known.version + 1, topics={**known.topics, topic.name: changed})


def _moved(known: BrokerInfo | None, new: BrokerInfo) -> bool:
    return known is None or (known.host, known.port) != (new.host, new.port)


def _named(known: Metadata, answer: MetadataResponse) -> Iterator[tuple[str, MetadataResponseTopic]]:
    for topic in answer.topics:
        name = topic.name if topic.name is not None else known.topic_name(topic.topic_id)
        if name is not None:
            yield name, topic


def _topic(known: TopicInfo | None, name: str, response: MetadataResponseTopic) -> TopicInfo:
    same = known is not None and (known.id == response.topic_id or not any(known.id) or not any(response.topic_id))
    before = known.partitions if known is not None and same else {}
    is_unknown = known is not None and response.error_code and not any(response.topic_id)
    return TopicInfo(
        name=name,
        id=known.id if known is not None and is_unknown else response.topic_id,
        is_internal=response.is_internal,
        partitions={
            partition.partition_index: _newer(before.get(partition.partition_index), name, partition)
            for partition in response.partitions
        },
        error=response.error_code,
    )


def _newer(known: PartitionInfo | None, topic: str, response: MetadataResponsePartition) -> PartitionInfo:
    if known is not None and -1 < response.leader_epoch < known.leader_epoch:
        return known
    return PartitionInfo(
        topic,
        response.partition_index,
        response.leader_id,
        response.leader_epoch,
        tuple(response.replica_nodes),
        tuple(response.isr_nodes),
        tuple(response.offline_replicas),
    )
