"""Metadata, key 3, versions 0-13.

v1 null: all topics, empty: none; controller · v2 cluster id · v4 may forbid auto-creation · v5 offline replicas
v7 leader epochs (KIP-320) · v8 authorized operations (KIP-430) · v9 flexible · v10 topic ids (KIP-516)
v11 no cluster operations any more · v12 topics by id · v13 an error for the whole request

A missing topic is created when the request and auto.create.topics.enable allow it. As in Kafka this response still has
UNKNOWN_TOPIC_OR_PARTITION for it, and the client retries: kafka-go polls in this way until a deleted topic is gone.

Law
    MD1 While there are too few brokers for default.replication.factor a missing topic is unknown, as in Kafka, which
        clients retry. INVALID_REPLICATION_FACTOR would be final to them, and the brokers may be starting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rota.coordinator.api.endpoints import BrokerAddress, controller_id, listed_addresses
from rota.coordinator.api.leader_waits import when_leaders_live
from rota.coordinator.api.node import Call, Node
from rota.coordinator.api.throttling import MutationQuota
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, INTERNAL, RESERVED, PartitionState, Refusal, Topic
from rota.coordinator.metadata.topic_names import invalid_reason
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.coordinator.security.operations import ALL_OPERATIONS, NOT_REQUESTED, ResourceType
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rota.protocol.wire import UUID_ZERO

TOPICS_CREATED_PER_REQUEST_MAX = 1_000
_NOT_FINAL = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_REPLICATION_FACTOR)  # with more brokers


def metadata(node: Node, call: Call, request: MetadataRequest) -> MetadataResponse | DelayedReply[MetadataResponse]:
    """Return the brokers and the leader of each partition.

    Delayed while a missing topic is created, and while one of the leaders may be dead.
    """
    if request.topics is not None and _is_malformed(call, request.topics):
        return _refused(call, request.topics)
    missing = _to_create(node, request)
    if missing:
        return eager_tasks.start(_created(node, call, request, missing))

    def leaders() -> Iterator[int]:
        return (state.leader for topic in _existing(node, call, request) for state in topic.partitions)

    return when_leaders_live(node, leaders, lambda: _response(node, call, request, _topics(node, call, request)))


def auto_create_counts(node: Node) -> tuple[int, int]:
    """Return (partitions, replicas) of an auto-created topic."""
    return node.config.num_partitions, node.config.default_replication_factor


# ---- the request


def _is_malformed(call: Call, requested: tuple[MetadataRequestTopic, ...]) -> bool:
    """Return whether a topic has an id before v12, although v10 has the field, or has neither a name nor an id."""
    if call.version < 12:
        return any(topic.topic_id != UUID_ZERO or topic.name is None for topic in requested)
    return any(topic.topic_id == UUID_ZERO and topic.name is None for topic in requested)


def _refused(call: Call, requested: tuple[MetadataRequestTopic, ...]) -> MetadataResponse:
    code = ErrorCode.INVALID_REQUEST
    return MetadataResponse(
        topics=tuple(MetadataResponseTopic(error_code=code, name=t.name or "", topic_id=t.topic_id) for t in requested),
        error_code=code if call.version >= 13 else ErrorCode.NONE,
    )


def _is_for_all(call: Call, request: MetadataRequest) -> bool:
    return request.topics is None or (call.version == 0 and not request.topics)


def _ids(request: MetadataRequest) -> list[bytes]:
    """Return the topic ids. A request with topic ids has no names."""
    return list(dict.fromkeys(topic.topic_id for topic in request.topics or () if topic.topic_id != UUID_ZERO))


def _names(request: MetadataRequest) -> list[str]:
    return list(dict.fromkeys(topic.name for topic in request.topics or () if topic.name is not None))


def _existing(node: Node, call: Call, request: MetadataRequest) -> Iterable[Topic]:
    """Iterate over the requested topics that exist."""
    if _is_for_all(call, request):
        return node.topics
    ids = _ids(request)
    found = map(node.topics.by_id, ids) if ids else map(node.topics.get, _names(request))
    return (topic for topic in found if topic is not None)


def _to_create(node: Node, request: MetadataRequest) -> list[str]:
    if not (request.allow_auto_topic_creation and node.config.auto_create_topics_enable) or _ids(request):
        return []
    missing = [name for name in _names(request) if name not in node.topics and invalid_reason(name) is None]
    return missing[:TOPICS_CREATED_PER_REQUEST_MAX]


async def _created(node: Node, call: Call, request: MetadataRequest, missing: list[str]) -> MetadataResponse:
    quota = MutationQuota(node, call, strict_since=0)
    outcomes = {name: await _create(node, name, quota) for name in missing}
    return _response(node, call, request, _by_names(node, _names(request), outcomes))


async def _create(node: Node, name: str, quota: MutationQuota) -> ErrorCode:
    """Create a topic and return its error code: UNKNOWN_TOPIC_OR_PARTITION when it exists from now on, or may later."""
    if name == CONSUMER_OFFSETS:
        await node.groups.ensure_topic()
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name in RESERVED:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partitions, replication = auto_create_counts(node)
    if not quota.is_allowed(partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        created = await node.topics.create(name, partitions, replication)
    except StoreFailed:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # clients retry
    if isinstance(created, Refusal) and created.code not in _NOT_FINAL:
        return created.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# ---- the response


def _topics(node: Node, call: Call, request: MetadataRequest) -> list[MetadataResponseTopic]:
    if _is_for_all(call, request):
        return [_topic(node, topic) for topic in node.topics]
    ids = _ids(request)
    return [_by_id(node, topic_id) for topic_id in ids] if ids else _by_names(node, _names(request), {})


def _by_names(node: Node, names: Iterable[str], outcomes: dict[str, ErrorCode]) -> list[MetadataResponseTopic]:
    topics = []
    for name in names:
        topic = None if name in outcomes else node.topics.get(name)
        topics.append(_missing(name, outcomes.get(name)) if topic is None else _topic(node, topic))
    return topics


def _missing(name: str, code: ErrorCode | None) -> MetadataResponseTopic:
    if code is None:
        is_invalid = invalid_reason(name) is not None
        code = ErrorCode.INVALID_TOPIC_EXCEPTION if is_invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL)


def _by_id(node: Node, topic_id: bytes) -> MetadataResponseTopic:
    topic = node.topics.by_id(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    return _topic(node, topic)


def _topic(node: Node, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(_partition(node, topic, state) for state in topic.partitions),
    )


def _partition(node: Node, topic: Topic, state: PartitionState) -> MetadataResponsePartition:
    error, leader, offline = availability(node, topic, state)
    return MetadataResponsePartition(
        error_code=error,
        partition_index=state.index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        offline_replicas=offline,
    )


def availability(node: Node, topic: Topic, state: PartitionState) -> tuple[ErrorCode, int, tuple[int, ...]]:
    """Return (error, leader, offline replicas) of a partition: LEADER_NOT_AVAILABLE and -1 without a live leader.

    A replica is offline when its broker is not in the cluster or, on this broker, when its log failed.
    """
    local = node.partitions.get(topic.name, state.index)
    failed = node.config.node_id if local is not None and local.offline is not None else None
    brokers = node.topics.brokers
    offline = tuple(broker for broker in state.replicas if broker == failed or broker not in brokers)
    if state.leader < 0 or state.leader in offline:
        return ErrorCode.LEADER_NOT_AVAILABLE, -1, offline
    return ErrorCode.NONE, state.leader, offline


def _response(
    node: Node, call: Call, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = ALL_OPERATIONS[ResourceType.TOPIC]
    with_operations = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=tuple(_broker(address) for address in listed_addresses(node, call)),
        cluster_id=node.topics.cluster_id,
        controller_id=controller_id(node),
        topics=tuple(topics),
        cluster_authorized_operations=ALL_OPERATIONS[ResourceType.CLUSTER] if with_operations else NOT_REQUESTED,
    )


def _broker(address: BrokerAddress) -> MetadataResponseBroker:
    return MetadataResponseBroker(node_id=address.node_id, host=address.host, port=address.port, rack=address.rack)
