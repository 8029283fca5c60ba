"""OffsetCommit and OffsetDelete: who may write a group's offsets.

Laws
    G1  A member commits in its own generation only, and not between a join phase and its assignment.
    G3  A stale member, instance or generation changes nothing and gets its code.
    A simple consumer (generation -1, no member id) commits only while the group has no members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rota.coordinator.group.effects import Append, OffsetRecord, OffsetsDropped, OffsetValue
from rota.coordinator.group.events import Commit, DropOffsets, InstanceId, MemberId, OffsetToCommit
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group
    from rota.coordinator.group.turn import Turn

_NONE = ErrorCode.NONE
_EMPTY, _STABLE, _COMPLETING = GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING


def commit(
    group: Group,
    member_id: MemberId,
    instance_id: InstanceId | None,
    generation: int,
    records: Sequence[OffsetRecord],
    now_ms: int,
) -> ErrorCode:
    """Remember these offsets; a member's session begins anew."""
    error = _check(group, member_id, instance_id, generation)
    if error is not _NONE:
        return error
    member = group.members.by_id.get(member_id)
    if member is not None:
        member.alive(now_ms)
    for record in records:
        group.replay(record)
    return _NONE


def committed(group: Group, event: Commit, turn: Turn) -> None:
    records = [_record(group.group_id, offset, turn.wall_ms) for offset in event.offsets]
    error = commit(group, event.member_id, event.instance_id, event.generation, records, turn.now_ms)
    if error is not _NONE:
        group.note_fencing(error, event.member_id, event.instance_id, "offset-commit", turn)
        turn.refuse(event.token, error)
        return
    turn.effects.extend(map(Append, records))
    turn.reply(event.token, _NONE)


def _check(group: Group, member_id: MemberId, instance_id: InstanceId | None, generation: int) -> ErrorCode:
    state = group.state
    if state is _EMPTY and generation < 0:
        return _NONE
    member = group.members.by_id.get(member_id)
    if member is None or (instance_id is not None and instance_id != member.instance_id):
        return _stranger(group, member_id, instance_id, generation)
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.REBALANCE_IN_PROGRESS if state is _COMPLETING else _NONE


def _stranger(group: Group, member_id: MemberId, instance_id: InstanceId | None, generation: int) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if group.is_vacant and generation >= 0:
        return ErrorCode.ILLEGAL_GENERATION  # from version 9 on the shell says GROUP_ID_NOT_FOUND
    return group.members.check(member_id, instance_id)


def _record(group_id: str, offset: OffsetToCommit, wall_ms: int) -> OffsetRecord:
    value = OffsetValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_ms=wall_ms,
        expire_ms=offset.expire_ms,
        topic_id=offset.topic_id,
    )
    return OffsetRecord(group_id, offset.topic, offset.partition, value)


def drop(group: Group, event: DropOffsets, turn: Turn) -> None:
    """OffsetDelete: what no member subscribes to may go."""
    error = _check_drop(group)
    if error is not _NONE:
        turn.refuse(event.token, OffsetsDropped(error))
        return
    answers = tuple(
        (topic, partition, _drop_one(group, topic, partition, turn)) for topic, partition in event.partitions
    )
    turn.reply(event.token, OffsetsDropped(_NONE, answers))


def _check_drop(group: Group) -> ErrorCode:
    if group.is_vacant:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not _EMPTY and not group.is_consumer:
        return ErrorCode.NON_EMPTY_GROUP
    return _NONE


def _drop_one(group: Group, topic: str, partition: int, turn: Turn) -> ErrorCode:
    if group.subscribes(topic):
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    if (topic, partition) in group.offsets:
        group.record(OffsetRecord(group.group_id, topic, partition, None), turn)
    return _NONE
