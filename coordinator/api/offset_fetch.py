"""OffsetFetch, key 9, versions 1-10.

v2 all topics (null) and a group error · v5 leader epoch · v6 flexible · v7 require stable (KIP-447)
v8 many groups (KIP-709) · v9 member epochs (KIP-848; classic groups ignore them) · v10 topic ids

Laws
    O1  A response waits until the commits that it contains are durable.
    O2  A partition without a committed offset has offset -1, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.effects import OffsetValue
from rota.coordinator.scheduling.delayed_reply import DelayedReply, gather
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

NONE = ErrorCode.NONE
ZERO_ID = bytes(16)
P = TypeVar("P", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)  # the same, up to v7 and from v8
Offsets = Mapping[tuple[str, int], OffsetValue]


IsUnstable = Callable[[str, int], bool]  # (topic, partition): may a transaction still change its offset?


def _is_stable(topic: str, partition: int) -> bool:
    return False


class RequestedTopic(NamedTuple):
    """One topic of the request; `name` is None when no topic has `topic_id`."""

    name: str | None
    topic_id: bytes
    partitions: Sequence[int]


def offset_fetch(
    node: Node, call: Call, request: OffsetFetchRequest
) -> OffsetFetchResponse | DelayedReply[OffsetFetchResponse]:
    """Return the committed offsets of one group, or of several. Delayed while a commit is being written."""
    if call.version >= 8:
        return _many(node, call, request)
    requested = (
        None
        if request.topics is None
        else [RequestedTopic(t.name, ZERO_ID, t.partition_indexes) for t in request.topics]
    )
    shard = node.groups.ready(request.group_id)
    if isinstance(shard, ErrorCode):
        return _single(call, requested, {}, shard)
    group = shard.machines.get(request.group_id)
    unstable = group.is_unstable if group is not None and request.require_stable else _is_stable
    body = _single(call, requested, {} if group is None else group.offsets, NONE, unstable)
    return shard.when_committed(body, lambda code: _single(call, requested, {}, code))


def _single(
    call: Call,
    requested: list[RequestedTopic] | None,
    offsets: Offsets,
    code: ErrorCode,
    is_unstable: IsUnstable = _is_stable,
) -> OffsetFetchResponse:
    """Return the response up to v7. Version 1 has no group error: each partition gets it."""
    topics = tuple(
        OffsetFetchResponseTopic(
            name=topic.name or "",
            partitions=tuple(
                _unstable(OffsetFetchResponsePartition, index)
                if is_unstable(topic.name or "", index)
                else _partition(OffsetFetchResponsePartition, index, offsets.get((topic.name or "", index)), code)
                for index in topic.partitions
            ),
        )
        for topic in (_topics_with_offsets(offsets) if requested is None else requested)
    )
    return OffsetFetchResponse(topics=topics, error_code=code)


def _many(
    node: Node, call: Call, request: OffsetFetchRequest
) -> OffsetFetchResponse | DelayedReply[OffsetFetchResponse]:
    """Return the response from v8 on. Delayed until the last of the shards has written its pending commits."""
    bodies = [_group(node, call, group_request, request.require_stable) for group_request in request.groups]
    return gather(bodies, lambda groups: OffsetFetchResponse(groups=tuple(groups)))


def _group(
    node: Node, call: Call, group_request: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup | DelayedReply[OffsetFetchResponseGroup]:
    shard = node.groups.ready(group_request.group_id)
    if isinstance(shard, ErrorCode):
        return OffsetFetchResponseGroup(group_id=group_request.group_id, error_code=shard)
    group = shard.machines.get(group_request.group_id)
    error = NONE if group is None else group.check_fetch(group_request.member_id, group_request.member_epoch)
    if error is not NONE:
        return OffsetFetchResponseGroup(group_id=group_request.group_id, error_code=error)
    offsets: Offsets = {} if group is None else group.offsets
    unstable = group.is_unstable if group is not None and require_stable else _is_stable
    requested = (
        _topics_with_offsets(offsets) if group_request.topics is None else _requested_topics(node, call, group_request)
    )
    body = OffsetFetchResponseGroup(
        group_id=group_request.group_id,
        topics=tuple(_topic(node, call, topic, offsets, unstable) for topic in requested),
    )
    return shard.when_committed(
        body, lambda code: OffsetFetchResponseGroup(group_id=group_request.group_id, error_code=code)
    )


def _requested_topics(node: Node, call: Call, group_request: OffsetFetchRequestGroup) -> list[RequestedTopic]:
    assert group_request.topics is not None
    if call.version < 10:
        return [RequestedTopic(topic.name, ZERO_ID, topic.partition_indexes) for topic in group_request.topics]
    requested = []
    for topic in group_request.topics:
        known = node.topics.by_id(topic.topic_id)
        requested.append(RequestedTopic(known.name if known else None, topic.topic_id, topic.partition_indexes))
    return requested


def _topic(
    node: Node, call: Call, topic: RequestedTopic, offsets: Offsets, is_unstable: IsUnstable
) -> OffsetFetchResponseTopics:
    topic_id = topic.topic_id
    if call.version >= 10 and topic_id == ZERO_ID and topic.name is not None:
        known = node.topics.get(topic.name)
        topic_id = known.topic_id if known else ZERO_ID
    code = ErrorCode.UNKNOWN_TOPIC_ID if topic.name is None else NONE
    return OffsetFetchResponseTopics(
        name=topic.name or "",
        topic_id=topic_id,
        partitions=tuple(
            _unstable(OffsetFetchResponsePartitions, index)
            if is_unstable(topic.name or "", index)
            else _partition(OffsetFetchResponsePartitions, index, _of_topic(offsets, topic, index), code)
            for index in topic.partitions
        ),
    )


def _of_topic(offsets: Offsets, topic: RequestedTopic, index: int) -> OffsetValue | None:
    """Return the offset, unless it was committed for a deleted topic of that name and the request names another id."""
    value = offsets.get((topic.name or "", index))
    is_foreign = value is not None and value.topic_id is not None and topic.topic_id not in (ZERO_ID, value.topic_id)
    return None if is_foreign else value


def _partition(shape: type[P], index: int, value: OffsetValue | None, code: ErrorCode) -> P:
    """O2: without a committed offset the response has -1 and empty metadata."""
    if value is None:
        return shape(partition_index=index, committed_offset=-1, error_code=code)
    return shape(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        error_code=code,
    )


def _unstable(shape: type[P], index: int) -> P:
    """Return the answer of a partition with a pending offset, for a client that requires stable ones (KIP-447)."""
    return shape(partition_index=index, committed_offset=-1, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _topics_with_offsets(offsets: Offsets) -> list[RequestedTopic]:
    """Return all topics with committed offsets, for a request without topics."""
    return [
        RequestedTopic(name, ZERO_ID, [index for _, index in keys])
        for name, keys in groupby(sorted(offsets), lambda key: key[0])
    ]
