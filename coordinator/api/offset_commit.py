"""OffsetCommit, key 8, versions 2-10.

v2-v4 retention time · v6 leader epoch (KIP-320) · v7 static members (KIP-345) · v8 flexible
v9 member epochs of KIP-848 (the same field; the classic generation here) · v10 topic ids (KIP-848)

Each partition is answered for itself: an unknown topic or too long metadata never spoils the others. Who may not commit
at all hears that, except about topics that are not there: Kafka looks at topics first, then at the member, then at
the metadata.
"""

from __future__ import annotations

from collections.abc import Callable

from rota.coordinator.api.node import Call, Node
from rota.coordinator.cluster.topic import Topic
from rota.coordinator.group.events import Commit, InstanceId, MemberId, OffsetToCommit
from rota.coordinator.server.parked import Parked
from rota.coordinator.shard.shard import Shard
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

NONE = ErrorCode.NONE
TOO_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE
Refused = dict[tuple[int, int], ErrorCode]  # by (position of the topic in the request, partition index)


def offset_commit(
    node: Node, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | Parked[OffsetCommitResponse]:
    """Answered when the offsets are durable."""
    refused: Refused = {}
    offsets = _offsets(node, call, request, refused)
    answer = _responder(request, refused)
    if not offsets and refused and TOO_LARGE not in refused.values():
        return answer(NONE)
    shard = node.groups.ready(request.group_id)
    if isinstance(shard, ErrorCode):
        return answer(shard)
    if request.generation_id_or_member_epoch >= 0 and request.group_id not in shard.groups:
        return answer(ErrorCode.GROUP_ID_NOT_FOUND if call.version >= 9 else ErrorCode.ILLEGAL_GENERATION)
    event = _event(shard, request, offsets)
    parked: Parked[ErrorCode] = shard.submit(
        node.groups.group(shard, request.group_id), event, event.token, lambda code: code
    )
    return parked.map(answer)


def _event(shard: Shard, request: OffsetCommitRequest, offsets: tuple[OffsetToCommit, ...]) -> Commit:
    instance_id = request.group_instance_id
    return Commit(
        token=shard.token(),
        member_id=MemberId(request.member_id),
        instance_id=None if instance_id is None else InstanceId(instance_id),
        generation=request.generation_id_or_member_epoch,
        offsets=offsets,
    )


def _offsets(node: Node, call: Call, request: OffsetCommitRequest, refused: Refused) -> tuple[OffsetToCommit, ...]:
    """What may be committed; the rest goes to `refused`."""
    retention_ms = request.retention_time_ms if call.version <= 4 else -1
    expire_ms = node.now_ms() + retention_ms if retention_ms >= 0 else None
    metadata_bytes_max = node.config.offset_metadata_max_bytes
    valid: list[OffsetToCommit] = []
    for place, asked in enumerate(request.topics):
        topic = node.topics.by_id(asked.topic_id) if call.version >= 10 else node.topics.get(asked.name)
        for one in asked.partitions:
            code = _check(call, topic, one, metadata_bytes_max)
            if code is NONE:
                assert topic is not None
                valid.append(_offset(topic, one, expire_ms))
            else:
                refused[place, one.partition_index] = code
    return tuple(valid)


def _check(call: Call, topic: Topic | None, one: OffsetCommitRequestPartition, metadata_bytes_max: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID if call.version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not 0 <= one.partition_index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata = one.committed_metadata
    if metadata and len(metadata) > metadata_bytes_max:
        return TOO_LARGE
    return NONE


def _offset(topic: Topic, one: OffsetCommitRequestPartition, expire_ms: int | None) -> OffsetToCommit:
    return OffsetToCommit(
        topic.name,
        one.partition_index,
        one.committed_offset,
        one.committed_leader_epoch,
        one.committed_metadata or "",
        topic.topic_id,
        expire_ms,
    )


def _responder(request: OffsetCommitRequest, refused: Refused) -> Callable[[ErrorCode], OffsetCommitResponse]:
    def respond(code: ErrorCode) -> OffsetCommitResponse:
        return OffsetCommitResponse(
            topics=tuple(_topic(place, asked, refused, code) for place, asked in enumerate(request.topics))
        )

    return respond


def _topic(place: int, asked: OffsetCommitRequestTopic, refused: Refused, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=asked.name,
        topic_id=asked.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(
                partition_index=one.partition_index,
                error_code=_code(refused.get((place, one.partition_index)), code) if refused else code,
            )
            for one in asked.partitions
        ),
    )


def _code(refusal: ErrorCode | None, code: ErrorCode) -> ErrorCode:
    """The answer for one partition, from its own refusal and what the group said."""
    return code if refusal is None or (refusal is TOO_LARGE and code is not NONE) else refusal
