"""OffsetFetch, key 9, versions 1-10.

v2 all topics (null) and a group error · v5 leader epoch · v6 flexible · v7 require stable (KIP-447)
v8 many groups (KIP-709) · v9 member epochs (KIP-848, unused by classic groups) · v10 topic ids

Laws
    O1  What is read waits for what it was computed from: a commit that is not durable yet is not shown before it is.
    O2  Unknown is -1, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.effects import OffsetValue
from rota.coordinator.scheduling.delayed_reply import DelayedReply
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


class Wanted(NamedTuple):
    """One topic that is asked for; `name` is None for an id that nobody knows."""

    name: str | None
    topic_id: bytes
    partitions: Sequence[int]


def offset_fetch(
    node: Node, call: Call, request: OffsetFetchRequest
) -> OffsetFetchResponse | DelayedReply[OffsetFetchResponse]:
    """The committed offsets of one group, or of many."""
    if call.version >= 8:
        return _many(node, call, request)
    wanted = None if request.topics is None else [Wanted(t.name, ZERO_ID, t.partition_indexes) for t in request.topics]
    shard = node.groups.ready(request.group_id)
    if isinstance(shard, ErrorCode):
        return _single(call, wanted, {}, shard)
    group = shard.machines.get(request.group_id)
    body = _single(call, wanted, {} if group is None else group.offsets, NONE)
    return shard.when_committed(body, lambda code: _single(call, wanted, {}, code))


def _single(call: Call, wanted: list[Wanted] | None, offsets: Offsets, code: ErrorCode) -> OffsetFetchResponse:
    """Up to v7. Version 1 has no place for a group error: it goes to each partition."""
    topics = tuple(
        OffsetFetchResponseTopic(
            name=want.name or "",
            partitions=tuple(
                _partition(OffsetFetchResponsePartition, index, offsets.get((want.name or "", index)), code)
                for index in want.partitions
            ),
        )
        for want in (_everything(offsets) if wanted is None else wanted)
    )
    return OffsetFetchResponse(topics=topics, error_code=code)


def _many(
    node: Node, call: Call, request: OffsetFetchRequest
) -> OffsetFetchResponse | DelayedReply[OffsetFetchResponse]:
    """From v8. The answer waits for the last of the shards that still write."""
    bodies = [_group(node, call, asked) for asked in request.groups]
    waiting = [body for body in bodies if isinstance(body, DelayedReply)]
    if not waiting:
        return OffsetFetchResponse(groups=tuple(bodies))  # type: ignore[arg-type]
    whole: DelayedReply[OffsetFetchResponse] = DelayedReply()
    left = len(waiting)

    def one_more(_: OffsetFetchResponseGroup) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            whole.answer(
                OffsetFetchResponse(
                    groups=tuple(body.value if isinstance(body, DelayedReply) else body for body in bodies)  # type: ignore[misc]
                )
            )

    for body in waiting:
        body.then(one_more)
    return whole


def _group(
    node: Node, call: Call, asked: OffsetFetchRequestGroup
) -> OffsetFetchResponseGroup | DelayedReply[OffsetFetchResponseGroup]:
    shard = node.groups.ready(asked.group_id)
    if isinstance(shard, ErrorCode):
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=shard)
    group = shard.machines.get(asked.group_id)
    offsets: Offsets = {} if group is None else group.offsets
    wanted = _everything(offsets) if asked.topics is None else _wanted(node, call, asked)
    body = OffsetFetchResponseGroup(
        group_id=asked.group_id, topics=tuple(_topic(node, call, want, offsets) for want in wanted)
    )
    return shard.when_committed(body, lambda code: OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code))


def _wanted(node: Node, call: Call, asked: OffsetFetchRequestGroup) -> list[Wanted]:
    assert asked.topics is not None
    if call.version < 10:
        return [Wanted(topic.name, ZERO_ID, topic.partition_indexes) for topic in asked.topics]
    wanted = []
    for topic in asked.topics:
        known = node.topics.by_id(topic.topic_id)
        wanted.append(Wanted(known.name if known else None, topic.topic_id, topic.partition_indexes))
    return wanted


def _topic(node: Node, call: Call, want: Wanted, offsets: Offsets) -> OffsetFetchResponseTopics:
    topic_id = want.topic_id
    if call.version >= 10 and topic_id == ZERO_ID and want.name is not None:
        known = node.topics.get(want.name)
        topic_id = known.topic_id if known else ZERO_ID
    code = ErrorCode.UNKNOWN_TOPIC_ID if want.name is None else NONE
    return OffsetFetchResponseTopics(
        name=want.name or "",
        topic_id=topic_id,
        partitions=tuple(
            _partition(OffsetFetchResponsePartitions, index, _of_topic(offsets, want, index), code)
            for index in want.partitions
        ),
    )


def _of_topic(offsets: Offsets, want: Wanted, index: int) -> OffsetValue | None:
    """Return the offset, unless it was committed for a deleted topic of that name and the request names another id."""
    value = offsets.get((want.name or "", index))
    is_foreign = value is not None and value.topic_id is not None and want.topic_id not in (ZERO_ID, value.topic_id)
    return None if is_foreign else value


def _partition(shape: type[P], index: int, value: OffsetValue | None, code: ErrorCode) -> P:
    """O2: an offset that nobody committed is -1 with empty metadata."""
    if value is None:
        return shape(partition_index=index, committed_offset=-1, error_code=code)
    return shape(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        error_code=code,
    )


def _everything(offsets: Offsets) -> list[Wanted]:
    """All topics that have offsets, for a request that names none."""
    return [
        Wanted(name, ZERO_ID, [index for _, index in keys])
        for name, keys in groupby(sorted(offsets), lambda key: key[0])
    ]
