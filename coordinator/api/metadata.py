"""Metadata, key 3, versions 0-13.

v1 no topics and all topics told apart, controller · v2 cluster id · v4 may forbid auto-creation · v5 offline replicas
v7 leader epochs (KIP-320) · v8 authorized operations (KIP-430) · v9 flexible · v10 topic ids (KIP-516)
v11 no cluster operations any more · v12 topics by id · v13 an error for the whole request

A missing topic is created when the request and auto.create.topics.enable allow it. As in Kafka this answer still calls
it unknown, and the client asks again: kafka-go asks so whether a topic it deleted is gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from rota.coordinator.api import authorized
from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata import eager
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS, INTERNAL, RESERVED, PartitionState, Refusal, Topic
from rota.coordinator.metadata.topic_names import wrong_with
from rota.coordinator.scheduling.delayed_reply import DelayedReply
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


def metadata(node: Node, call: Call, request: MetadataRequest) -> MetadataResponse | DelayedReply[MetadataResponse]:
    """Who leads what. Parked only while a missing topic is being created."""
    asked = request.topics
    if asked is None or (call.version == 0 and not asked):
        return _answer(node, call, request, [_topic(node, topic) for topic in node.topics])
    if _is_malformed(call, asked):
        return _refused(call, asked)
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != UUID_ZERO)
    if ids:
        return _answer(node, call, request, [_by_id(node, topic_id) for topic_id in ids])
    names = list(dict.fromkeys(topic.name for topic in asked if topic.name is not None))
    missing = _to_create(node, request, names)
    if missing:
        return eager.start(_created(node, call, request, names, missing))
    return _answer(node, call, request, _by_names(node, names, {}))


def auto_create_counts(node: Node) -> tuple[int, int]:
    """(partitions, replicas) of a topic that nobody asked for in so many words."""
    return node.config.num_partitions, node.config.default_replication_factor


# ---- what was asked


def _is_malformed(call: Call, asked: tuple[MetadataRequestTopic, ...]) -> bool:
    """Ids are there from v10, but may be asked for only from v12 on."""
    if call.version < 12:
        return any(topic.topic_id != UUID_ZERO or topic.name is None for topic in asked)
    return any(topic.topic_id == UUID_ZERO and topic.name is None for topic in asked)


def _refused(call: Call, asked: tuple[MetadataRequestTopic, ...]) -> MetadataResponse:
    code = ErrorCode.INVALID_REQUEST
    return MetadataResponse(
        topics=tuple(MetadataResponseTopic(error_code=code, name=t.name or "", topic_id=t.topic_id) for t in asked),
        error_code=code if call.version >= 13 else ErrorCode.NONE,
    )


def _to_create(node: Node, request: MetadataRequest, names: list[str]) -> list[str]:
    if not (request.allow_auto_topic_creation and node.config.auto_create_topics_enable):
        return []
    missing = [name for name in names if name not in node.topics and wrong_with(name) is None]
    return missing[:TOPICS_CREATED_PER_REQUEST_MAX]


async def _created(
    node: Node, call: Call, request: MetadataRequest, names: list[str], missing: list[str]
) -> MetadataResponse:
    told = {name: await _create(node, name) for name in missing}
    return _answer(node, call, request, _by_names(node, names, told))


async def _create(node: Node, name: str) -> ErrorCode:
    """What the answer says of it: unknown when it exists from now on, else why it does not."""
    if name == CONSUMER_OFFSETS:
        await node.groups.ensure_offsets_topic()
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name in RESERVED:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partitions, replication = auto_create_counts(node)
    try:
        made = await node.topics.create(name, partitions, replication)
    except StoreFailed:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # clients ask again
    if isinstance(made, Refusal) and made.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        return made.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# ---- the answer


def _by_names(node: Node, names: Iterable[str], told: dict[str, ErrorCode]) -> list[MetadataResponseTopic]:
    found = []
    for name in names:
        topic = None if name in told else node.topics.get(name)
        found.append(_missing(name, told.get(name)) if topic is None else _topic(node, topic))
    return found


def _missing(name: str, code: ErrorCode | None) -> MetadataResponseTopic:
    if code is None:
        is_wrong = wrong_with(name) is not None
        code = ErrorCode.INVALID_TOPIC_EXCEPTION if is_wrong else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
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
    """A partition whose log failed here is offline here: nobody can lead it."""
    offline = offline_replicas(node, topic, state)
    leader = -1 if state.leader in offline else state.leader
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=state.index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        offline_replicas=offline,
    )


def offline_replicas(node: Node, topic: Topic, state: PartitionState) -> tuple[int, ...]:
    """Replicas on brokers that are gone, and the one here when its log failed."""
    here = node.partitions.get(topic.name, state.index)
    failed = node.config.node_id if here is not None and here.offline is not None else None
    return tuple(broker for broker in state.replicas if broker == failed or broker not in node.topics.brokers)


def _answer(node: Node, call: Call, request: MetadataRequest, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = authorized.TOPIC
    wants_cluster = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=(_this_broker(node, call),),
        cluster_id=node.topics.cluster_id,
        controller_id=node.config.node_id,
        topics=tuple(topics),
        cluster_authorized_operations=authorized.CLUSTER if wants_cluster else authorized.NOT_ASKED,
    )


def _this_broker(node: Node, call: Call) -> MetadataResponseBroker:
    return MetadataResponseBroker(
        node_id=node.config.node_id, host=call.reached_host, port=call.reached_port, rack=node.config.broker_rack
    )
