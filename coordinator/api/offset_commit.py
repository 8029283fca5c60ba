"""OffsetCommit, key 8, versions 2-10.

v2-v4 retention time · v6 leader epoch (KIP-320) · v7 static members (KIP-345) · v8 flexible
v9 member epochs of KIP-848 (the same field; the classic generation here) · v10 topic ids (KIP-848)

Each partition is answered for itself: an unknown topic or too long metadata never spoils the others. Who may not commit
at all hears that, except about topics that are not there: Kafka looks at topics first, then at the member, then at
the metadata.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.events import Commit, InstanceId, MemberId, OffsetRecord, OffsetValue
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

NONE = ErrorCode.NONE
TOO_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE
INT64_MAX: Final = (1 << 63) - 1
REMEMBERED_ANSWERS_MAX: Final = 4_096  # whoever commits some partitions commits the same ones again
REMEMBERED_PARTITIONS_MAX: Final = 128
Refused = dict[tuple[int, int], ErrorCode]  # by (position of the topic in the request, partition index)


def offset_commit(
    node: Node, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | DelayedReply[OffsetCommitResponse]:
    """Answer when the offsets are durable."""
    refused: Refused = {}
    group_id, generation = request.group_id, request.generation_id_or_member_epoch
    records = _records(node, call, request, refused)
    answer = partial(_answer, request, refused)
    if not records and refused and TOO_LARGE not in refused.values():
        return answer(NONE)
    shard = node.groups.ready(group_id)
    if isinstance(shard, ErrorCode):
        return answer(shard)
    group = shard.machines.get(group_id)
    if group is None:
        if generation >= 0:
            return answer(ErrorCode.GROUP_ID_NOT_FOUND if call.version >= 9 else ErrorCode.ILLEGAL_GENERATION)
        group = node.groups.group(shard, group_id)
    instance_id = request.group_instance_id
    event = Commit(
        token=shard.token(),
        member_id=MemberId(request.member_id),
        instance_id=None if instance_id is None else InstanceId(instance_id),
        generation=generation,
        records=records,
    )
    return shard.submit(group, event, _code_only).map(answer)


def _code_only(code: ErrorCode) -> ErrorCode:
    return code


def _records(node: Node, call: Call, request: OffsetCommitRequest, refused: Refused) -> list[OffsetRecord]:
    """Return what may be committed; the rest goes to `refused`."""
    wall_ms, group_id, version = node.wall_ms(), request.group_id, call.version
    retention_ms = request.retention_time_ms if version <= 4 else -1
    expire_ms = min(wall_ms + retention_ms, INT64_MAX) if retention_ms >= 0 else None
    metadata_bytes_max = node.config.offset_metadata_max_bytes
    records: list[OffsetRecord] = []
    for place, asked in enumerate(request.topics):
        topic = node.topics.by_id(asked.topic_id) if version >= 10 else node.topics.get(asked.name)
        name, topic_id, count = ("", b"", 0) if topic is None else (topic.name, topic.topic_id, len(topic.partitions))
        for one in asked.partitions:
            index, metadata = one.partition_index, one.committed_metadata or ""
            if not 0 <= index < count:
                refused[place, index] = _unknown(version, topic)
            elif len(metadata) > metadata_bytes_max:
                refused[place, index] = TOO_LARGE
            else:
                offset, epoch = one.committed_offset, one.committed_leader_epoch
                value = OffsetValue(offset, epoch, metadata, wall_ms, expire_ms, topic_id)
                records.append(OffsetRecord(group_id, name, index, value))
    return records


def _unknown(version: int, topic: Topic | None) -> ErrorCode:
    if topic is None and version >= 10:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _answer(request: OffsetCommitRequest, refused: Refused, code: ErrorCode) -> OffsetCommitResponse:
    topics = request.topics
    if not refused and len(topics) == 1 and 0 < len(topics[0].partitions) <= REMEMBERED_PARTITIONS_MAX:
        # a topic that is there: its name is short
        topic = topics[0]
        return _remembered(topic.name, topic.topic_id, tuple([one.partition_index for one in topic.partitions]), code)
    return OffsetCommitResponse(
        topics=tuple([_topic(place, asked, refused, code) for place, asked in enumerate(topics)])
    )


def _topic(place: int, asked: OffsetCommitRequestTopic, refused: Refused, code: ErrorCode) -> OffsetCommitResponseTopic:
    indexes = tuple([one.partition_index for one in asked.partitions])
    if not refused and 0 < len(indexes) <= REMEMBERED_PARTITIONS_MAX:
        return _remembered_topic(asked.name, asked.topic_id, indexes, code)
    return OffsetCommitResponseTopic(
        name=asked.name,
        topic_id=asked.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(partition_index=index, error_code=_code(refused.get((place, index)), code))
            for index in indexes
        ),
    )


@lru_cache(REMEMBERED_ANSWERS_MAX)
def _remembered(name: str, topic_id: bytes, indexes: tuple[int, ...], code: ErrorCode) -> OffsetCommitResponse:
    """Return the response to a commit of one topic. Messages are never changed, so the same one may be sent again."""
    return OffsetCommitResponse(topics=(_remembered_topic(name, topic_id, indexes, code),))


@lru_cache(REMEMBERED_ANSWERS_MAX)
def _remembered_topic(
    name: str, topic_id: bytes, indexes: tuple[int, ...], code: ErrorCode
) -> OffsetCommitResponseTopic:
    """One code for all partitions."""
    return OffsetCommitResponseTopic(
        name=name,
        topic_id=topic_id,
        partitions=tuple(OffsetCommitResponsePartition(partition_index=one, error_code=code) for one in indexes),
    )


def _code(refusal: ErrorCode | None, code: ErrorCode) -> ErrorCode:
    """The answer for one partition, from its own refusal and what the group said."""
    return code if refusal is None or (refusal is TOO_LARGE and code is not NONE) else refusal
