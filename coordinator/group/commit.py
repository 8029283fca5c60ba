"""OffsetCommit and OffsetDelete: the checks before a group's offsets are written.

Laws
    G1  A member commits in its own generation only, and not between a join phase and its assignment.
    G3  A stale member, instance or generation changes nothing and gets its code.
    A simple consumer (generation -1, no member id) commits only while the group has no members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rota.coordinator.group import notes
from rota.coordinator.group.effects import AppendAndReply, AppendInTransaction, Effect, OffsetsDropped, Step
from rota.coordinator.group.events import (
    Commit,
    DropOffsets,
    InstanceId,
    MemberId,
    OffsetRecord,
    OffsetRecords,
    TransactionalCommit,
)
from rota.coordinator.group.state import ClassicGroup
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember

# bound once: this path is nearly as hot as a heartbeat's
_NONE = ErrorCode.NONE
_EMPTY, _COMPLETING = GroupState.EMPTY, GroupState.COMPLETING


def commit(group: ClassicGroup, event: Commit, now_ms: int, wall_ms: int) -> list[Effect]:
    """Handle an OffsetCommit. Effects without a Step: this path is hot."""
    member_id, instance_id, generation = event.member_id, event.instance_id, event.generation
    if take(group, member_id, instance_id, generation, event.records, now_ms):
        return [AppendAndReply(event.records, event.token, _NONE)]
    step = Step(now_ms, wall_ms)
    error = _check(group, member_id, instance_id, generation)
    _note_refusal(group, event, error, step)
    step.refuse(event.token, error)
    return step.effects


def take(
    group: ClassicGroup,
    member_id: MemberId,
    instance_id: InstanceId | None,
    generation: int,
    records: Sequence[OffsetRecord | OffsetRecords],
    now_ms: int,
) -> bool:
    """Take the offsets of an OffsetCommit in, and restart the member's session; False if it is refused."""
    if _check(group, member_id, instance_id, generation) is not _NONE:
        return False
    member = group.members.by_id.get(member_id)
    if member is not None:
        member.alive(now_ms)
    group.replay_offsets(records)
    return True


def commit_in_transaction(group: ClassicGroup, event: TransactionalCommit, step: Step) -> None:
    """Decide on a TxnOffsetCommit (KIP-447): the offsets are pending until the transaction ends."""
    error = _check_in_transaction(group, event)
    if error is not _NONE:
        _note_refusal(group, event, error, step)
    if error is not _NONE or not event.records:  # nothing is written
        step.refuse(event.token, error)
        return
    group.replay_in_transaction(event.producer_id, event.records)
    step.effects.append(AppendInTransaction(event.records, event.producer_id, event.producer_epoch, event.token, _NONE))


def _check_in_transaction(group: ClassicGroup, event: TransactionalCommit) -> ErrorCode:
    """A zombie is fenced by its member id and generation; a producer of before KIP-447 sends neither.

    Without a generation a group without members takes the offsets of any member id, as those of an OffsetCommit.
    """
    is_simple = group.state is _EMPTY or (not event.member_id and event.instance_id is None)
    if event.generation < 0 and is_simple:
        return _NONE
    if group.is_vacant:
        return ErrorCode.ILLEGAL_GENERATION
    error = group.check_member(event.member_id, event.instance_id)
    if error is _NONE and event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _note_refusal(group: ClassicGroup, event: Commit | TransactionalCommit, error: ErrorCode, step: Step) -> None:
    """Count the refusal in a group that exists: commits to any other leave nothing behind."""
    if group.is_vacant:
        return
    member = group.members.by_id.get(event.member_id)
    if member is None or error is ErrorCode.FENCED_INSTANCE_ID:
        sender = EventMember(member_id=event.member_id, instance_id=event.instance_id)
    else:
        sender = member.as_event_member()
    note = notes.FENCED if error is ErrorCode.FENCED_INSTANCE_ID else notes.COMMIT_REFUSED
    group.note_refusal(note, sender, "offset-commit", error, step)


def _check(group: ClassicGroup, member_id: MemberId, instance_id: InstanceId | None, generation: int) -> ErrorCode:
    state = group.state
    if state is _EMPTY and generation < 0:
        return _NONE
    member = group.members.by_id.get(member_id)
    if member is None or (instance_id is not None and instance_id != member.instance_id):
        if group.is_vacant and state is _EMPTY:
            return ErrorCode.ILLEGAL_GENERATION  # from version 9 on the API says GROUP_ID_NOT_FOUND
        return group.check_member(member_id, instance_id)
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.REBALANCE_IN_PROGRESS if state is _COMPLETING else _NONE


def drop(group: ClassicGroup, event: DropOffsets, step: Step) -> None:
    """Decide on an OffsetDelete: offsets of topics that no member subscribes to are removed."""
    error = _check_drop(group)
    if error is not _NONE:
        step.refuse(event.token, OffsetsDropped(error))
        return
    answers = drop_unless_subscribed(group, event.partitions, group.is_subscribed_to, step)
    step.reply(event.token, OffsetsDropped(_NONE, answers))


def drop_unless_subscribed(
    group: ClassicGroup, partitions: Iterable[tuple[str, int]], is_subscribed_to: Callable[[str], bool], step: Step
) -> tuple[tuple[str, int, ErrorCode], ...]:
    """Remove the offsets of these partitions, except of topics that members subscribe to; return a code for each.

    As in Kafka also those that are pending in transactions.
    """
    answers = []
    for topic, partition in partitions:
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed_to(topic) else _NONE
        if error is _NONE and ((topic, partition) in group.offsets or group.is_unstable(topic, partition)):
            group.drop_offset(topic, partition, step)
        answers.append((topic, partition, error))
    return tuple(answers)


def _check_drop(group: ClassicGroup) -> ErrorCode:
    if group.is_vacant:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not _EMPTY and not group.is_consumer:
        return ErrorCode.NON_EMPTY_GROUP
    return _NONE
