"""DescribeTopicPartitions, key 75, version 0 (KIP-966).

Topics in the order of their names, page by page: a page ends after `response_partition_limit` partitions (at most
`max.request.partition.size.limit`, at least one), and `next_cursor` says where the next one starts.
The last known ELR is always empty: the last broker of ISR and ELR that may have lost records stays in the ISR.
"""

from __future__ import annotations

from dataclasses import field

from rota.coordinator.api.metadata import availability
from rota.coordinator.api.node import Call, Node
from rota.coordinator.metadata.topic import INTERNAL, PartitionState, Topic
from rota.coordinator.metadata.topic_names import invalid_reason
from rota.coordinator.security.operations import ALL_OPERATIONS, NOT_REQUESTED, ResourceType
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from rota.protocol.wire import UUID_ZERO


@dataclass(slots=True)
class Page:
    """One response. `left` counts the partitions that still fit."""

    left: int
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list)
    next_cursor: Cursor | None = None


def describe_topic_partitions(
    node: Node, call: Call, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return the page that begins at the request's cursor."""
    cursor, names = request.cursor, {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        return _refused(names)
    first = "" if cursor is None else cursor.topic_name
    page = Page(max(1, min(request.response_partition_limit, node.config.max_request_partition_size_limit)))
    for name in sorted(names or node.topics.names()):
        if name < first:
            continue
        if page.left <= 0:
            page.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        start = cursor.partition_index if cursor is not None and name == first else 0
        _add(node, page, name, start)
        if page.next_cursor is not None:
            break
    return DescribeTopicPartitionsResponse(topics=tuple(page.topics), next_cursor=page.next_cursor)


def _refused(names: set[str]) -> DescribeTopicPartitionsResponse:
    code = ErrorCode.INVALID_REQUEST
    topics = (_failed(name, code, NOT_REQUESTED) for name in sorted(names))
    return DescribeTopicPartitionsResponse(topics=tuple(topics))


def _failed(name: str, code: ErrorCode, operations: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=UUID_ZERO,
        is_internal=name in INTERNAL,
        topic_authorized_operations=operations,
    )


def _add(node: Node, page: Page, name: str, start: int) -> None:
    topic = node.topics.get(name)
    if topic is None:
        is_invalid = invalid_reason(name) is not None
        code = ErrorCode.INVALID_TOPIC_EXCEPTION if is_invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        page.topics.append(_failed(name, code, ALL_OPERATIONS[ResourceType.TOPIC]))
        return
    states = topic.partitions[start : start + page.left]
    page.left -= len(states)
    page.topics.append(_topic(node, topic, states))
    if states and states[-1].index + 1 < len(topic.partitions):
        page.next_cursor = Cursor(topic_name=name, partition_index=states[-1].index + 1)


def _topic(node: Node, topic: Topic, states: tuple[PartitionState, ...]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(_partition(node, topic, state) for state in states),
        topic_authorized_operations=ALL_OPERATIONS[ResourceType.TOPIC],
    )


def _partition(node: Node, topic: Topic, state: PartitionState) -> DescribeTopicPartitionsResponsePartition:
    error, leader, offline = availability(node, topic, state)
    return DescribeTopicPartitionsResponsePartition(
        error_code=error,
        partition_index=state.index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=state.elr,
        last_known_elr=(),
        offline_replicas=offline,
    )
