"""CreateTopics, key 19, versions 2-7.

v4 -1 for the broker's defaults (KIP-464) · v5 flexible, the configs of the new topic (KIP-525) · v6 quotas
v7 topic ids (KIP-516)

Each topic has its own error, which does not affect the others. Clients cannot create internal topics.
"""

from __future__ import annotations

from collections import Counter

from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.throttling import MutationQuota
from rota.coordinator.api.timeout import gather_within, is_over
from rota.coordinator.config.definition import ConfigRefused
from rota.coordinator.config.describe import describe_topic
from rota.coordinator.config.topic import TopicConfig
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.placement import PARTITIONS_PER_REQUEST_MAX
from rota.coordinator.metadata.topic import CLUSTER_METADATA, RESERVED, Refusal, Topic
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

DEFAULT = -1
STRICT_SINCE = 6  # versions whose clients know THROTTLING_QUOTA_EXCEEDED


def create_topics(node: Node, call: Call, request: CreateTopicsRequest) -> DelayedReply[CreateTopicsResponse]:
    """Create the topics; delayed until they are in the metadata store and their logs are open, or for `timeout_ms`."""
    return eager_tasks.start(_create_all(node, request, MutationQuota(node, call, strict_since=STRICT_SINCE)))


async def _create_all(node: Node, request: CreateTopicsRequest, quota: MutationQuota) -> CreateTopicsResponse:
    times = Counter(topic.name for topic in request.topics)
    topics = [topic for topic in request.topics if times[topic.name] == 1]
    if is_over(request.timeout_ms) and any(topic.name != CLUSTER_METADATA for topic in topics):
        return CreateTopicsResponse(topics=tuple(_timed_out(topic.name) for topic in request.topics))
    if sum(_partition_count(topic) for topic in request.topics) > PARTITIONS_PER_REQUEST_MAX:
        return _all_refused(request)
    created = await gather_within(
        node, request.timeout_ms, (_create(node, topic, quota, request.validate_only) for topic in topics)
    )
    results = [
        _refused(topic.name, result) if isinstance(result, Refusal) else _created(node, result)
        for topic, result in zip(topics, created, strict=True)
    ]
    duplicate = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results += [_refused(name, duplicate) for name, count in times.items() if count > 1]
    response = CreateTopicsResponse(topics=tuple(results))
    quota.apply(response)
    return response


def _partition_count(topic: CreatableTopic) -> int:
    return len(topic.assignments) or max(topic.num_partitions, 1)


def _all_refused(request: CreateTopicsRequest) -> CreateTopicsResponse:
    why = f"Excessively large number of partitions per request: at most {PARTITIONS_PER_REQUEST_MAX}."
    names = dict.fromkeys(topic.name for topic in request.topics)
    refusal = Refusal(ErrorCode.POLICY_VIOLATION, why)
    return CreateTopicsResponse(topics=tuple(_refused(name, refusal) for name in names))


async def _create(node: Node, requested: CreatableTopic, quota: MutationQuota, validate_only: bool) -> Topic | Refusal:
    """Return the new topic. Raises StoreFailed."""
    topic = _plan(node, requested)
    if isinstance(topic, Topic):
        topic = quota.refuse(len(topic.partitions)) or topic
    return topic if isinstance(topic, Refusal) or validate_only else await node.topics.add(topic)


def _plan(node: Node, requested: CreatableTopic) -> Topic | Refusal:
    """Return the topic that the request would create, or its error; changes nothing."""
    if requested.name in RESERVED:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {requested.name} is prohibited.")
    if requested.assignments and (requested.replication_factor != DEFAULT or requested.num_partitions != DEFAULT):
        which = "replication factor" if requested.replication_factor != DEFAULT else "numPartitions"
        why = f"A manual partition assignment was specified, but {which} was not set to -1."
        return Refusal(ErrorCode.INVALID_REQUEST, why)
    planned = node.topics.plan(
        requested.name,
        node.config.num_partitions if requested.num_partitions == DEFAULT else requested.num_partitions,
        node.config.default_replication_factor
        if requested.replication_factor == DEFAULT
        else requested.replication_factor,
        assignment=[(entry.partition_index, entry.broker_ids) for entry in requested.assignments] or None,
        configs={config.name: config.value or "" for config in requested.configs},
    )
    return planned if isinstance(planned, Refusal) else _refuse_configs(node, requested) or planned


def _refuse_configs(node: Node, requested: CreatableTopic) -> Refusal | None:
    empty = [config.name for config in requested.configs if config.value is None]
    if empty:
        return Refusal(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(empty)}")
    try:
        TopicConfig({config.name: config.value for config in requested.configs}, node.config)
    except ConfigRefused as refused:
        return Refusal(ErrorCode.INVALID_CONFIG, str(refused))
    return None


def _refused(name: str, refusal: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=refusal.code, error_message=refusal.message, num_partitions=-1, configs=()
    )


def _timed_out(name: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=ErrorCode.REQUEST_TIMED_OUT, num_partitions=-1, configs=())


def _created(node: Node, topic: Topic) -> CreatableTopicResult:
    described = describe_topic(topic.configs, node.config)
    configs = tuple(
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in described
    )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=configs,
    )
