"""How offsets and groups end: retention, DeleteGroups, deleted topics.

Laws
    O3  The offsets of a group that is not Empty do not expire, but for topics that no member subscribes to any more.
    A tombstone for the group is appended after those of its offsets: a crash between them leaves an Empty group.
    What was committed for a deleted topic goes; what was committed since for a new topic of that name stays.
    XL6 An offset does not expire while a transaction may still commit one for its partition; a group with a pending
        offset stays.
"""

from __future__ import annotations

from collections.abc import Callable

from rota.coordinator.group import notes
from rota.coordinator.group.effects import OffsetValue, Step
from rota.coordinator.group.events import DeleteGroup, ExpireOffsets, TopicsDeleted
from rota.coordinator.group.members import pending_timer
from rota.coordinator.group.state import ClassicGroup
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode


def expire(group: ClassicGroup, event: ExpireOffsets, step: Step) -> None:
    """Remove offsets past their retention, and then an Empty group without offsets."""
    expired = _expired(group, event, step)
    _drop(group, expired, step)
    if expired:
        step.note(notes.OFFSETS_EXPIRED, group.fields(offsets=len(expired)))
    is_empty = group.state is GroupState.EMPTY and not group.offsets and not group.members.pending
    is_over = is_empty and not group.pending
    if is_over and (expired or not group.is_vacant):
        _end(group, step, offsets=len(expired))


def delete(group: ClassicGroup, event: DeleteGroup, step: Step) -> None:
    """Decide on DeleteGroups: an Empty group goes with all its offsets."""
    if group.is_vacant:
        step.refuse(event.token, ErrorCode.GROUP_ID_NOT_FOUND)
    elif group.state is not GroupState.EMPTY:
        step.refuse(event.token, ErrorCode.NON_EMPTY_GROUP)
    else:
        offsets = list(dict.fromkeys((*group.offsets, *(group.pending or ()))))
        _drop(group, offsets, step)
        _end(group, step, offsets=len(offsets))
        step.reply(event.token, ErrorCode.NONE)


def topics_deleted(group: ClassicGroup, event: TopicsDeleted, step: Step) -> None:
    """Remove the offsets of deleted topics.

    A tombstone is for the committed and the pending offset of a partition: there is none while one is of a new topic.
    """
    committed = [*group.offsets.items(), *(group.pending.items() if group.pending else ())]
    named = [(key, _is_of(key, value, event)) for key, value in committed if key[0] in event.topic_ids]
    kept = {key for key, is_deleted in named if not is_deleted}
    _drop(group, list(dict.fromkeys(key for key, _ in named if key not in kept)), step)


def _is_of(key: tuple[str, int], value: OffsetValue, event: TopicsDeleted) -> bool:
    if value.topic_id is None:
        return value.commit_ms <= event.deleted_ms
    return value.topic_id in event.topic_ids[key[0]]


def _expired(group: ClassicGroup, event: ExpireOffsets, step: Step) -> list[tuple[str, int]]:
    base_ms = _base_ms(group)
    if base_ms is None:
        return []
    late = [key for key, value in group.offsets.items() if _is_late(value, base_ms, event, step)]
    return [key for key in late if not group.is_subscribed_to(key[0]) and not group.is_unstable(*key)]


def expires_ms(group: ClassicGroup, retention_ms: int) -> dict[tuple[str, int], int]:
    """Return when each offset is removed unless the group becomes active, ms since the epoch; nothing while it is."""
    base_ms = _base_ms(group)
    if base_ms is None or group.members:
        return {}
    return {
        key: base_ms(value) + retention_ms if value.expire_ms is None else value.expire_ms
        for key, value in group.offsets.items()
    }


def _base_ms(group: ClassicGroup) -> Callable[[OffsetValue], int] | None:
    """Return from when the retention of an offset counts; None while nothing may expire."""
    state_ms = group.state_ms
    if not group.protocol_type:
        return _commit_ms  # a group of simple consumers
    if group.state is GroupState.EMPTY:
        return _commit_ms if state_ms == -1 else lambda _: state_ms
    is_known = group.state is GroupState.STABLE and group.is_consumer and group.subscribed_topics() is not None
    return _commit_ms if is_known else None


def _commit_ms(value: OffsetValue) -> int:
    return value.commit_ms


def _is_late(value: OffsetValue, base_ms: Callable[[OffsetValue], int], event: ExpireOffsets, step: Step) -> bool:
    if value.expire_ms is not None:
        return step.wall_ms >= value.expire_ms
    return step.wall_ms - base_ms(value) >= event.retention_ms


def _drop(group: ClassicGroup, keys: list[tuple[str, int]], step: Step) -> None:
    for topic, partition in keys:
        group.drop_offset(topic, partition, step)


def forget_pending(group: ClassicGroup, step: Step) -> None:
    """Forget the member ids that were given out and not used yet (KIP-394)."""
    for member_id in group.members.pending:
        step.disarm(pending_timer(member_id))
    group.members.pending.clear()


def _end(group: ClassicGroup, step: Step, *, offsets: int) -> None:
    forget_pending(group, step)
    group.record_group(None, step)
    group.transition_to(GroupState.DEAD, step.wall_ms)
    step.note(notes.DELETED, group.fields(offsets=offsets))
