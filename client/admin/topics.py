"""Topics: created, deleted, described, listed, given more partitions.

Laws
    Asking about a topic never creates it.
    Where a call waits, the broker that answers next shows what was done: all partitions have a leader, or the topic is
    gone. Kafka's own clients do not wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rota.client.admin.asking import Deadline, settle
from rota.client.admin.outcomes import UNKNOWN, Answer, Asked, Outcomes, Place
from rota.client.admin.visible import Expected, until_visible
from rota.client.errors import IllegalUse
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode, Controller
from rota.client.types import PartitionInfo
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from rota.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rota.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from rota.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from rota.protocol.wire import UUID_ZERO

BY_ID_VERSION: Final = 6  # of DeleteTopics
UNREACHED: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT})  # asking again would be a second attempt, not a question
REMEDIES: Final = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "Choose another name, or delete the topic first.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check the name against list_topics().",
    ErrorCode.UNKNOWN_TOPIC_ID: "The topic was deleted, or the id belongs to another cluster.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "A name has 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-', and is not '.' or '..'.",
    ErrorCode.INVALID_REPLICATION_FACTOR: "Use -1 for the broker's default, or at most the number of brokers.",
    ErrorCode.INVALID_PARTITIONS: "Use -1 for the broker's default when creating; a total can only grow.",
    ErrorCode.INVALID_CONFIG: "describe_configs() of a topic lists the names and their types.",
}
NameAndId = tuple[str | None, bytes]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be made. -1: the broker's `num.partitions`, `default.replication.factor`.

    `replica_assignments`: for each partition, from 0, the brokers that hold it, the preferred leader first; then
    `partitions` and `replication_factor` stay -1.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    replica_assignments: Sequence[Sequence[int]] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The new number of partitions of a topic; `replica_assignments` for those that are new (None: the broker's
    choice)."""

    total: int
    replica_assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """What was made, or with `validate_only` would be. `id` (16 bytes) is None before CreateTopics v7 and for a mere
    check; `partitions` and `replication_factor` are -1, `configs` empty where a broker before v5 answered."""

    name: str
    id: bytes | None = field(repr=False)
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None] = field(repr=False)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions, in order. `id` is None where brokers give none (before Kafka 2.8)."""

    name: str
    id: bytes | None = field(repr=False)
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]


@dataclass(frozen=True, slots=True)
class TopicListing:
    """That a topic is there."""

    name: str
    id: bytes | None = field(repr=False)
    is_internal: bool


async def create_topics(
    cluster: Cluster, topics: Iterable[NewTopic], deadline: Deadline, *, validate_only: bool, wait: bool
) -> dict[str, CreatedTopic]:
    """One request for all of them. Raises AdminFailed."""
    wanted = _by_name(topics)
    outcomes = Outcomes[str, CreatedTopic]("creating topics", 19, wanted, Place, final=UNREACHED, remedies=REMEDIES)

    def build(names: Sequence[str]) -> CreateTopicsRequest:
        made = tuple(_creatable(wanted[name]) for name in names)
        return CreateTopicsRequest(topics=made, timeout_ms=deadline.broker_ms, validate_only=validate_only)

    def read(_: Asked[str], answer: CreateTopicsResponse) -> Iterable[Answer[str, CreatedTopic]]:
        for one in answer.topics:
            yield Answer(one.name, one.error_code, _made(one, validate_only), one.error_message)

    if wanted:
        await settle(cluster, Controller(), outcomes, build, read, deadline)
    if wait and not validate_only:
        expected = {name: Expected(_size(wanted[name], made), made.id, name) for name, made in outcomes.done.items()}
        await until_visible(cluster, outcomes, expected, deadline)
    return outcomes.results()


async def delete_topics(cluster: Cluster, topics: Iterable[str | bytes], deadline: Deadline, *, wait: bool) -> None:
    """By name, or by id (16 bytes). Raises AdminFailed."""
    wanted = tuple(topics)
    by_id = any(isinstance(topic, bytes) for topic in wanted)
    outcomes = Outcomes[str | bytes, NameAndId](
        "deleting topics", 20, wanted, _place, final=UNREACHED, remedies=REMEDIES
    )

    def build(keys: Sequence[str | bytes]) -> DeleteTopicsRequest:
        states = tuple(
            DeleteTopicState(topic_id=key) if isinstance(key, bytes) else DeleteTopicState(name=key, topic_id=UUID_ZERO)
            for key in keys
        )
        names = tuple(key for key in keys if isinstance(key, str))
        return DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=deadline.broker_ms)

    if wanted:
        oldest = BY_ID_VERSION if by_id else 0
        await settle(cluster, Controller(), outcomes, build, _deleted, deadline, oldest=oldest)
    if wait:
        gone = {key: Expected(0, _id(topic_id), name) for key, (name, topic_id) in outcomes.done.items() if name}
        await until_visible(cluster, outcomes, gone, deadline)
    outcomes.results()


async def create_partitions(
    cluster: Cluster,
    totals: Mapping[str, int | NewPartitions],
    deadline: Deadline,
    *,
    validate_only: bool,
    wait: bool,
) -> None:
    """Raises AdminFailed."""
    wanted = {name: one if isinstance(one, NewPartitions) else NewPartitions(one) for name, one in totals.items()}
    outcomes = Outcomes[str, None]("adding partitions", 37, wanted, Place, final=UNREACHED, remedies=REMEDIES)

    def build(names: Sequence[str]) -> CreatePartitionsRequest:
        grown = tuple(_grown(name, wanted[name]) for name in names)
        return CreatePartitionsRequest(topics=grown, timeout_ms=deadline.broker_ms, validate_only=validate_only)

    def read(_: Asked[str], answer: CreatePartitionsResponse) -> Iterable[Answer[str, None]]:
        return (Answer(one.name, one.error_code, None, one.error_message) for one in answer.results)

    if wanted:
        await settle(cluster, Controller(), outcomes, build, read, deadline)
    if wait and not validate_only:
        expected = {name: Expected(wanted[name].total, None, name) for name in outcomes.done}
        await until_visible(cluster, outcomes, expected, deadline)
    outcomes.results()


async def describe_topics(cluster: Cluster, names: Iterable[str], deadline: Deadline) -> dict[str, TopicDescription]:
    """Raises AdminFailed, with UnknownTopic for what is not there."""
    wanted = tuple(names)
    outcomes = Outcomes[str, TopicDescription]("describing topics", 3, wanted, Place, final=UNKNOWN, remedies=REMEDIES)

    def read(_: Asked[str], answer: MetadataResponse) -> Iterable[Answer[str, TopicDescription]]:
        return (Answer(str(one.name), one.error_code, _described(one)) for one in answer.topics)

    if wanted:
        await settle(cluster, AnyNode(), outcomes, _about, read, deadline)
    return outcomes.results()


async def list_topics(cluster: Cluster, deadline: Deadline, *, internal: bool) -> dict[str, TopicListing]:
    """All topics by name; internal ones when asked for."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    answer = await cluster.ask_until(
        AnyNode(), request, lambda one: (one.error_code,), what="listing topics", timeout_ms=deadline.left_ms
    )
    there = sorted((one.name, one) for one in answer.topics if one.error_code not in UNKNOWN)
    return {
        name: TopicListing(name, _id(one.topic_id), one.is_internal)
        for name, one in there
        if internal or not one.is_internal
    }


# ---- how requests and answers read


def _about(names: Sequence[str]) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def _place(key: str | bytes) -> Place:
    return Place(key if isinstance(key, str) else f"id {key.hex()}")


def _by_name(topics: Iterable[NewTopic]) -> dict[str, NewTopic]:
    found: dict[str, NewTopic] = {}
    for topic in topics:
        if topic.name in found:
            raise IllegalUse(f"create_topics was given {topic.name} twice; name each topic once")
        found[topic.name] = topic
    return found


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
            for index, brokers in enumerate(topic.replica_assignments or ())
        ),
        configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()),
    )


def _deleted(_: Asked[str | bytes], answer: DeleteTopicsResponse) -> Iterable[Answer[str | bytes, NameAndId]]:
    """Told of the name and of the id: whichever it was asked by counts."""
    for one in answer.responses:
        for key in (one.name, one.topic_id):
            if key is not None:
                yield Answer(key, one.error_code, (one.name, one.topic_id), one.error_message)


def _made(one: CreatableTopicResult, is_trial: bool) -> CreatedTopic:
    """A trial is answered with an id, too, which nobody will ever have."""
    configs = {config.name: config.value for config in one.configs or ()}
    topic_id = None if is_trial else _id(one.topic_id)
    return CreatedTopic(one.name, topic_id, one.num_partitions, one.replication_factor, configs)


def _size(asked: NewTopic, made: CreatedTopic) -> int:
    """How many partitions have to be seen; where nobody says (before v5), one."""
    return max(made.partitions, asked.partitions, len(asked.replica_assignments or ()), 1)


def _grown(name: str, wanted: NewPartitions) -> CreatePartitionsTopic:
    given = wanted.replica_assignments
    assignments = None if given is None else tuple(CreatePartitionsAssignment(broker_ids=tuple(one)) for one in given)
    return CreatePartitionsTopic(name=name, count=wanted.total, assignments=assignments)


def _described(one: MetadataResponseTopic) -> TopicDescription:
    partitions = sorted(one.partitions, key=lambda partition: partition.partition_index)
    return TopicDescription(
        str(one.name),
        _id(one.topic_id),
        one.is_internal,
        tuple(
            PartitionInfo(
                str(one.name),
                part.partition_index,
                part.leader_id,
                part.leader_epoch,
                part.replica_nodes,
                part.isr_nodes,
                part.offline_replicas,
            )
            for part in partitions
        ),
    )


def _id(topic_id: bytes) -> bytes | None:
    return topic_id if any(topic_id) else None
