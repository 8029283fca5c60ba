"""Topics: create, delete, describe, list, add partitions.

Laws
    Describing a topic never creates it.
    A call with `wait` ends when the metadata of a broker shows the change: all partitions have a leader, or the topic
    does not exist. Kafka's clients do not wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from rota.client.admin.call_results import UNKNOWN_TOPIC_CODES, CallResults, ErrorContext, KeyResult, SentRequest
from rota.client.admin.requests import Deadline, request_with_retries
from rota.client.admin.topic_visibility import ExpectedTopic, wait_until_visible
from rota.client.checks import INT16, INT32, whole_number, wire_name
from rota.client.errors import BrokerError, IllegalArgument, IllegalUse
from rota.client.network.cluster import Cluster
from rota.client.network.targets import AnyNode, Controller
from rota.client.types import PartitionInfo
from rota.protocol.dataclass import dataclass
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
NOT_RETRIED: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT})  # a retry would be a second change
REMEDIES: Final = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "Choose another name, or delete the topic first.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check the name against list_topics().",
    ErrorCode.UNKNOWN_TOPIC_ID: "The topic was deleted, or the id belongs to another cluster.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: (
        "A name has 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-', is not '.' or '..', and differs from those of other "
        "topics in more than '.' and '_'."
    ),
    ErrorCode.INVALID_REPLICATION_FACTOR: "Use -1 for the broker's default, or at most the number of brokers.",
    ErrorCode.INVALID_PARTITIONS: "Use -1 for the broker's default when creating; a total can only grow.",
    ErrorCode.INVALID_CONFIG: "describe_configs() of a topic lists the names and their types.",
}
NameAndId = tuple[str | None, bytes]


def _check_brokers(assignments: Sequence[Sequence[int]] | None) -> None:
    for replicas in assignments or ():
        for broker in replicas:
            whole_number("a broker of replica_assignments", broker, INT32)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1: the broker's `num.partitions`, `default.replication.factor`.

    `replica_assignments`: for each partition, from 0, the brokers that hold it, the preferred leader first; then
    `partitions` and `replication_factor` stay -1.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    replica_assignments: Sequence[Sequence[int]] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wire_name("name", self.name)
        for name, value in self.configs.items():
            wire_name(f"the value of {wire_name('the name of a setting', name)}", "" if value is None else value)
        whole_number("partitions", self.partitions, INT32)
        whole_number("replication_factor", self.replication_factor, INT16)
        _check_brokers(self.replica_assignments)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The new number of partitions of a topic; `replica_assignments` for those that are new (None: the broker's
    choice)."""

    total: int
    replica_assignments: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        whole_number("the number of partitions", self.total, INT32)
        _check_brokers(self.replica_assignments)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The topic that was created, or with `validate_only` would be. `id` (16 bytes) is None before CreateTopics v7 and
    with `validate_only`; `partitions` and `replication_factor` are -1, `configs` empty before CreateTopics v5."""

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


NOT_DESCRIBED: Final = TopicDescription("", None, False, ())  # for a result that is an error


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic in a list."""

    name: str
    id: bytes | None = field(repr=False)
    is_internal: bool


async def create_topics(
    cluster: Cluster, topics: Iterable[NewTopic], deadline: Deadline, *, validate_only: bool, wait: bool
) -> dict[str, CreatedTopic]:
    """Create topics with one request for all. Returns them by name. Raises AdminFailed."""
    requested = _by_name(topics)
    results = CallResults[str, CreatedTopic](
        "creating topics", 19, requested, ErrorContext, final=NOT_RETRIED, remedies=REMEDIES
    )

    def build(names: Sequence[str]) -> CreateTopicsRequest:
        made = tuple(_creatable_topic(requested[name]) for name in names)
        return CreateTopicsRequest(topics=made, timeout_ms=deadline.broker_timeout_ms, validate_only=validate_only)

    def read(_: SentRequest[str], answer: CreateTopicsResponse) -> Iterable[KeyResult[str, CreatedTopic]]:
        for topic in answer.topics:
            yield KeyResult(topic.name, topic.error_code, _created_topic(topic, validate_only), topic.error_message)

    if requested:
        await request_with_retries(cluster, Controller(), results, build, read, deadline)
    if wait and not validate_only:
        expected = {
            name: ExpectedTopic(_expected_partition_count(requested[name], made), made.id, name)
            for name, made in results.done.items()
        }
        await wait_until_visible(cluster, results, expected, deadline)
    return results.all_or_raise()


def check_names_or_ids(given: Iterable[str | bytes]) -> None:
    """Raises IllegalArgument for what is neither a name nor an id of 16 bytes."""
    for item in given:
        if not isinstance(item, str) and not (isinstance(item, bytes) and len(item) == len(UUID_ZERO)):
            raise IllegalArgument(f"delete_topics takes names, or ids of 16 bytes, not {item!r}")


async def delete_topics(cluster: Cluster, topics: Iterable[str | bytes], deadline: Deadline, *, wait: bool) -> None:
    """Delete topics by name or by id (16 bytes). Raises AdminFailed."""
    requested = tuple(topics)
    by_id = any(isinstance(topic, bytes) for topic in requested)
    results = CallResults[str | bytes, NameAndId](
        "deleting topics", 20, requested, _error_context, final=NOT_RETRIED, remedies=REMEDIES
    )

    def build(keys: Sequence[str | bytes]) -> DeleteTopicsRequest:
        states = tuple(
            DeleteTopicState(topic_id=key) if isinstance(key, bytes) else DeleteTopicState(name=key, topic_id=UUID_ZERO)
            for key in keys
        )
        names = tuple(key for key in keys if isinstance(key, str))
        return DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=deadline.broker_timeout_ms)

    if requested:
        version_min = BY_ID_VERSION if by_id else 0
        await request_with_retries(
            cluster, Controller(), results, build, _read_delete_topics, deadline, version_min=version_min
        )
    if wait:
        expected = {
            key: ExpectedTopic(0, _id(topic_id), name) for key, (name, topic_id) in results.done.items() if name
        }
        await wait_until_visible(cluster, results, expected, deadline)
    results.all_or_raise()


async def create_partitions(
    cluster: Cluster,
    totals: Mapping[str, int | NewPartitions],
    deadline: Deadline,
    *,
    validate_only: bool,
    wait: bool,
) -> None:
    """Add partitions up to the total of each topic. Raises AdminFailed."""
    requested = {
        wire_name("a topic", name): count if isinstance(count, NewPartitions) else NewPartitions(count)
        for name, count in totals.items()
    }
    results = CallResults[str, None](
        "adding partitions", 37, requested, ErrorContext, final=NOT_RETRIED, remedies=REMEDIES
    )

    def build(names: Sequence[str]) -> CreatePartitionsRequest:
        grown = tuple(_partitions_topic(name, requested[name]) for name in names)
        return CreatePartitionsRequest(topics=grown, timeout_ms=deadline.broker_timeout_ms, validate_only=validate_only)

    def read(_: SentRequest[str], answer: CreatePartitionsResponse) -> Iterable[KeyResult[str, None]]:
        return (KeyResult(result.name, result.error_code, None, result.error_message) for result in answer.results)

    if requested:
        await request_with_retries(cluster, Controller(), results, build, read, deadline)
    if wait and not validate_only:
        expected = {name: ExpectedTopic(requested[name].total, None, name) for name in results.done}
        await wait_until_visible(cluster, results, expected, deadline)
    results.all_or_raise()


async def describe_topics(cluster: Cluster, names: Iterable[str], deadline: Deadline) -> dict[str, TopicDescription]:
    """Return the description of each topic. Raises AdminFailed, with UnknownTopic for those that do not exist."""
    requested = tuple(names)
    results = CallResults[str, TopicDescription](
        "describing topics", 3, requested, ErrorContext, final=UNKNOWN_TOPIC_CODES, remedies=REMEDIES
    )

    def read(sent: SentRequest[str], answer: MetadataResponse) -> Iterable[KeyResult[str, TopicDescription]]:
        for name in sent.keys if answer.error_code else ():
            yield KeyResult(name, answer.error_code, NOT_DESCRIBED)
        for topic in answer.topics:
            yield KeyResult(str(topic.name), topic.error_code, _topic_description(topic))

    if requested:
        await request_with_retries(cluster, AnyNode(), results, _metadata_request, read, deadline)
    return results.all_or_raise()


async def list_topics(cluster: Cluster, deadline: Deadline, *, internal: bool) -> dict[str, TopicListing]:
    """Return all topics by name; with `internal` the internal topics too."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    answer = await cluster.send_request_until(
        AnyNode(),
        request,
        lambda response: (response.error_code,),
        what="listing topics",
        timeout_ms=deadline.remaining_ms,
    )
    if answer.error_code:
        raise BrokerError(answer.error_code, "listing topics")
    existing = sorted((topic.name, topic) for topic in answer.topics if topic.error_code not in UNKNOWN_TOPIC_CODES)
    return {
        name: TopicListing(name, _id(topic.topic_id), topic.is_internal)
        for name, topic in existing
        if internal or not topic.is_internal
    }


# ---- requests and responses


def _metadata_request(names: Sequence[str]) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def _error_context(key: str | bytes) -> ErrorContext:
    return ErrorContext(key if isinstance(key, str) else f"id {key.hex()}")


def _by_name(topics: Iterable[NewTopic]) -> dict[str, NewTopic]:
    found: dict[str, NewTopic] = {}
    for topic in topics:
        if not isinstance(topic, NewTopic):
            raise IllegalArgument(f"create_topics takes NewTopics, not {topic!r}: give NewTopic({topic!r})")
        if topic.name in found:
            raise IllegalUse(f"create_topics was given {topic.name} twice; name each topic once")
        found[topic.name] = topic
    return found


def _creatable_topic(topic: NewTopic) -> CreatableTopic:
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


def _read_delete_topics(
    _: SentRequest[str | bytes], answer: DeleteTopicsResponse
) -> Iterable[KeyResult[str | bytes, NameAndId]]:
    """Yield the result under the name and under the id: only the key that the request holds is recorded."""
    for result in answer.responses:
        for key in (result.name, result.topic_id):
            if key is not None:
                yield KeyResult(key, result.error_code, (result.name, result.topic_id), result.error_message)


def _created_topic(topic: CreatableTopicResult, validate_only: bool) -> CreatedTopic:
    """Convert a result. With `validate_only` the broker returns an id that no topic will have: it is dropped."""
    configs = {config.name: config.value for config in topic.configs or ()}
    topic_id = None if validate_only else _id(topic.topic_id)
    return CreatedTopic(topic.name, topic_id, topic.num_partitions, topic.replication_factor, configs)


def _expected_partition_count(requested: NewTopic, made: CreatedTopic) -> int:
    """The number of partitions to wait for; 1 where neither the request nor the response (before v5) has it."""
    return max(made.partitions, requested.partitions, len(requested.replica_assignments or ()), 1)


def _partitions_topic(name: str, requested: NewPartitions) -> CreatePartitionsTopic:
    given = requested.replica_assignments
    assignments = (
        None if given is None else tuple(CreatePartitionsAssignment(broker_ids=tuple(brokers)) for brokers in given)
    )
    return CreatePartitionsTopic(name=name, count=requested.total, assignments=assignments)


def _topic_description(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return TopicDescription(
        str(topic.name),
        _id(topic.topic_id),
        topic.is_internal,
        tuple(
            PartitionInfo(
                str(topic.name),
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
