"""OffsetCommit, key 8, versions 2-10.

v2-v4 retention time · v6 leader epoch (KIP-320) · v7 static members (KIP-345) · v8 flexible
v9 member epochs of KIP-848 (the same field; the classic generation here) · v10 topic ids (KIP-848)

Each partition has its own error: an unknown topic or too long metadata does not affect the others. Kafka checks the
topics first, then the member, then the metadata: a member that may not commit gets its error for every partition
except those of unknown topics. Offsets that do not fit into one batch are refused as in Kafka (UNKNOWN_SERVER_ERROR).
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.events import Commit, InstanceId, MemberId, OffsetRecord, OffsetValue
from rota.coordinator.group.records import fit_in_batch
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
NAMES_BYTES_MAX: Final = 400  # of a record of an offset without its group and metadata, which has the topic's name
CACHED_RESPONSES_MAX: Final = 4_096  # a consumer commits the same partitions again and again
CACHED_PARTITIONS_MAX: Final = 128
Refused = dict[tuple[int, int], ErrorCode]  # by (position of the topic in the request, partition index)


def offset_commit(
    node: Node, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | DelayedReply[OffsetCommitResponse]:
    """Append the offsets to the log; delayed until they are durable."""
    refused: Refused = {}
    group_id, generation = request.group_id, request.generation_id_or_member_epoch
    records = _records(node, call, request, refused)
    answer = partial(_answer, call, request, refused)
    if not fits(node, group_id, records):
        return answer(ErrorCode.UNKNOWN_SERVER_ERROR)
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
        version=call.version,
    )
    return shard.submit(group, event, _code_only).map(answer)


def fits(node: Node, group_id: str, records: list[OffsetRecord]) -> bool:
    """CO8. Return whether one batch of the offsets topic takes all these offsets. Few are not measured, for speed."""
    bytes_max = node.config.message_max_bytes
    record_bytes_max = NAMES_BYTES_MAX + 3 * (node.config.offset_metadata_max_bytes + len(group_id))
    return len(records) * record_bytes_max <= bytes_max or fit_in_batch(records, bytes_max)


def _code_only(code: ErrorCode) -> ErrorCode:
    return code


def _records(node: Node, call: Call, request: OffsetCommitRequest, refused: Refused) -> list[OffsetRecord]:
    """Return a record for each valid offset; add an error to `refused` for each other one."""
    wall_ms, group_id, version = node.wall_ms(), request.group_id, call.version
    retention_ms = request.retention_time_ms if version <= 4 else -1
    expire_ms = min(wall_ms + retention_ms, INT64_MAX) if retention_ms >= 0 else None
    metadata_bytes_max = node.config.offset_metadata_max_bytes
    records: list[OffsetRecord] = []
    for position, requested in enumerate(request.topics):
        topic = node.topics.by_id(requested.topic_id) if version >= 10 else node.topics.get(requested.name)
        name, topic_id, count = ("", b"", 0) if topic is None else (topic.name, topic.topic_id, len(topic.partitions))
        for partition in requested.partitions:
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            if not 0 <= index < count:
                refused[position, index] = _unknown(version, topic)
            elif len(metadata) > metadata_bytes_max:
                refused[position, index] = TOO_LARGE
            else:
                offset, epoch = partition.committed_offset, partition.committed_leader_epoch
                value = OffsetValue(offset, epoch, metadata, wall_ms, expire_ms, topic_id)
                records.append(OffsetRecord(group_id, name, index, value))
    return records


def _unknown(version: int, topic: Topic | None) -> ErrorCode:
    if topic is None and version >= 10:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _answer(call: Call, request: OffsetCommitRequest, refused: Refused, code: ErrorCode) -> OffsetCommitResponse:
    topics = request.topics
    if refused or code is not NONE:
        call.counters.add_error(code or next(iter(refused.values())))
    if not refused and len(topics) == 1 and 0 < len(topics[0].partitions) <= CACHED_PARTITIONS_MAX:
        # the topic exists, so its name is short
        topic = topics[0]
        return _cached_response(
            topic.name, topic.topic_id, tuple([partition.partition_index for partition in topic.partitions]), code
        )
    return OffsetCommitResponse(
        topics=tuple([_topic(position, requested, refused, code) for position, requested in enumerate(topics)])
    )


def _topic(
    position: int, requested: OffsetCommitRequestTopic, refused: Refused, code: ErrorCode
) -> OffsetCommitResponseTopic:
    indexes = tuple([partition.partition_index for partition in requested.partitions])
    if not refused and 0 < len(indexes) <= CACHED_PARTITIONS_MAX:
        return _cached_topic(requested.name, requested.topic_id, indexes, code)
    return OffsetCommitResponseTopic(
        name=requested.name,
        topic_id=requested.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(partition_index=index, error_code=_code(refused.get((position, index)), code))
            for index in indexes
        ),
    )


@lru_cache(CACHED_RESPONSES_MAX)
def _cached_response(name: str, topic_id: bytes, indexes: tuple[int, ...], code: ErrorCode) -> OffsetCommitResponse:
    """Return the response to a commit of one topic. Messages are immutable, so responses may share it."""
    return OffsetCommitResponse(topics=(_cached_topic(name, topic_id, indexes, code),))


@lru_cache(CACHED_RESPONSES_MAX)
def _cached_topic(name: str, topic_id: bytes, indexes: tuple[int, ...], code: ErrorCode) -> OffsetCommitResponseTopic:
    """Return the response of one topic, with one code for all partitions."""
    return OffsetCommitResponseTopic(
        name=name,
        topic_id=topic_id,
        partitions=tuple(OffsetCommitResponsePartition(partition_index=index, error_code=code) for index in indexes),
    )


def _code(refusal: ErrorCode | None, code: ErrorCode) -> ErrorCode:
    """Return the code of one partition, from its own error and that of the group."""
    return code if refusal is None or (refusal is TOO_LARGE and code is not NONE) else refusal
