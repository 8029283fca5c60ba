"""OffsetCommit, key 8, versions 2-10.

v2-v4 retention time · v6 leader epoch (KIP-320) · v7 static members (KIP-345) · v8 flexible
v9 member epochs of KIP-848 (the same field; the classic generation here) · v10 topic ids (KIP-848)

Each partition has its own error: an unknown topic or too long metadata does not affect the others. Kafka checks the
topics first, then the member, then the metadata: a member that may not commit gets its error for every partition
except those of unknown topics. Offsets that do not fit into one batch are refused as in Kafka (UNKNOWN_SERVER_ERROR).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from struct import Struct
from typing import Any, Final, cast

from rota.coordinator.api.committed_partitions import (
    UNITS_MAX,
    WHOLE_TOPIC,
    Refused,
    answered,
    is_metadata_too_long,
)
from rota.coordinator.api.node import Call, Node
from rota.coordinator.group.events import Commit, InstanceId, MemberId, OffsetRecord, OffsetRecords
from rota.coordinator.group.offsets import decode_offset, encode_offset, offset_tail
from rota.coordinator.group.records import can_fit_in_batch
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.network.call import Codecs
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.compiler import codec
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rota.protocol.records.offset_columns import (
    IDS_SINCE,
    RETENTION_UNTIL,
    CommittedTopic,
    TopicOffsets,
    decode_commit,
    encode_committed,
    offset_values,
)

NONE = ErrorCode.NONE
TOO_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE
INT64_MAX: Final = (1 << 63) - 1
NAMES_BYTES_MAX: Final = 400  # of a record of an offset without its group and metadata, which has the topic's name
pack_head: Final = Struct(">qi").pack  # offset, leader epoch


def codecs(version: int) -> Codecs:
    """Return the compiled codecs of a version, which read and write a topic as columns."""
    encode = codec(OffsetCommitResponse, version).encode
    return partial(decode_commit, OffsetCommitRequest, OffsetCommitRequestPartition, version), partial(
        encode_committed, encode, version
    )


def offset_commit(
    node: Node, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | DelayedReply[OffsetCommitResponse]:
    """Append the offsets to the log; delayed until they are durable."""
    refused: Refused = {}
    group_id, generation = request.group_id, request.generation_id_or_member_epoch
    records = _records(node, call, request, refused)
    answer = partial(_answer, call, request, refused)
    if not can_be_one_batch(node, group_id, records):
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
    member_id = MemberId(request.member_id)
    instance_id = None if request.group_instance_id is None else InstanceId(request.group_instance_id)
    if not refused:  # as nearly always: the answer is known before the write, and no event is needed
        taken = member_id, instance_id, generation, records
        decided = shard.record(group, group.take_commit, taken, records, answer(NONE), answer)
        if decided is not None:
            return decided
    event = Commit(
        token=shard.token(),
        member_id=member_id,
        instance_id=instance_id,
        generation=generation,
        records=records,
        version=call.version,
    )
    return shard.submit(group, event, _code_only).map(answer)


def can_be_one_batch(node: Node, group_id: str, records: Sequence[OffsetRecord | OffsetRecords]) -> bool:
    """CO8. Return whether one batch of the offsets topic takes all these offsets. Few are not measured, for speed."""
    bytes_max = node.config.message_max_bytes
    record_bytes_max = NAMES_BYTES_MAX + 3 * (node.config.offset_metadata_max_bytes + len(group_id))
    count = 0
    for record in records:
        count += len(record.partitions) if type(record) is OffsetRecords else 1
    return count * record_bytes_max <= bytes_max or can_fit_in_batch(records, bytes_max)


def _code_only(code: ErrorCode) -> ErrorCode:
    return code


def _records(node: Node, call: Call, request: OffsetCommitRequest, refused: Refused) -> list[OffsetRecords]:
    """Return the records of each topic's valid offsets; add an error to `refused` for each other one."""
    wall_ms, group_id, version = node.wall_ms(), request.group_id, call.version
    retention_ms = request.retention_time_ms if version <= RETENTION_UNTIL else -1
    expire_ms = min(wall_ms + retention_ms, INT64_MAX) if retention_ms >= 0 else None
    metadata_max = node.config.offset_metadata_max_bytes
    records: list[OffsetRecords] = []
    for position, requested in enumerate(request.topics):
        topic = node.topics.by_id(requested.topic_id) if version >= IDS_SINCE else node.topics.get(requested.name)
        columns = _columns(requested)
        if topic is None:
            missing = [(position, index) for index in (WHOLE_TOPIC, *columns.indexes)]
            refused.update(dict.fromkeys(missing, _unknown(version, topic)))
            continue
        count, topic_id = len(topic.partitions), topic.topic_id
        tail = offset_tail(wall_ms, topic_id)
        values = offset_values(columns, count, metadata_max // UNITS_MAX, tail)
        if values is None:  # or metadata is so long that its characters have to be looked at
            columns = _valid(columns, position, count, metadata_max, refused)
            values = offset_values(columns, count, metadata_max, tail) or []
        if expire_ms is not None:
            values = [_dated(raw, expire_ms) for raw in values]
        if values:
            records.append(OffsetRecords(group_id, topic.name, columns.indexes, values))
    return records


def _columns(requested: OffsetCommitRequestTopic | TopicOffsets) -> TopicOffsets:
    """Return the topic in columns, also one of a request that was not decoded but made in this process."""
    if isinstance(requested, TopicOffsets):
        return requested
    partitions = requested.partitions
    return TopicOffsets(
        OffsetCommitRequestPartition,
        requested.name,
        requested.topic_id,
        [each.partition_index for each in partitions],
        [pack_head(each.committed_offset, each.committed_leader_epoch) for each in partitions],
        [each.committed_metadata for each in partitions],
    )


def _valid(columns: TopicOffsets, position: int, count: int, metadata_max: int, refused: Refused) -> TopicOffsets:
    """Return the partitions that may be committed; add an error to `refused` for each other one."""
    kept: list[int] = []
    for at, index in enumerate(columns.indexes):
        if not 0 <= index < count:
            refused[position, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif is_metadata_too_long(columns.metadata[at] or "", metadata_max):
            refused[position, index] = TOO_LARGE
        else:
            kept.append(at)
    return columns.only(kept)


def _dated(raw: bytes, expire_ms: int) -> bytes:
    value = decode_offset(raw)
    value.expire_ms = expire_ms
    return encode_offset(value)


def _unknown(version: int, topic: Topic | None) -> ErrorCode:
    if topic is None and version >= 10:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _answer(call: Call, request: OffsetCommitRequest, refused: Refused, code: ErrorCode) -> OffsetCommitResponse:
    """Return the response: one code for all partitions of a topic, or a message where they have several."""
    topics: Sequence[Any] = request.topics
    if refused or code is not NONE:
        call.counters.add_error(code or next(iter(refused.values())))
    columns = [_columns(each) for each in topics]
    if refused:
        by_id = call.version >= IDS_SINCE
        names = [each.topic_id if by_id else each.name for each in columns]
        answers = answered([(name, each.indexes) for name, each in zip(names, columns, strict=True)], refused, code)
        return OffsetCommitResponse(topics=tuple([_topic(name, of_topic) for name, of_topic in answers.items()]))
    shape, number = OffsetCommitResponsePartition, int(code)
    made = [CommittedTopic(shape, each.name, each.topic_id, each.indexes, number) for each in columns if each.indexes]
    return OffsetCommitResponse(topics=cast("tuple[OffsetCommitResponseTopic, ...]", tuple(made)))


def _topic(topic: str | bytes, answers: Sequence[tuple[int, ErrorCode]]) -> OffsetCommitResponseTopic:
    partitions = tuple(OffsetCommitResponsePartition(partition_index=index, error_code=code) for index, code in answers)
    if isinstance(topic, str):
        return OffsetCommitResponseTopic(name=topic, partitions=partitions)
    return OffsetCommitResponseTopic(topic_id=topic, partitions=partitions)
