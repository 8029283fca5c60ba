"""How offsets and groups end: retention, DeleteGroups, topics that are gone.

Laws
    O3  The offsets of a group that is not Empty do not expire, but for topics that no member subscribes to any more.
    A tombstone for the group is appended after those of its offsets: a crash between them leaves an Empty group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rota.coordinator.group import notes
from rota.coordinator.group.effects import GroupRecord, OffsetRecord, OffsetValue
from rota.coordinator.group.events import ExpireOffsets, Remove, TopicsGone
from rota.coordinator.group.members import pending_timer
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group
    from rota.coordinator.group.turn import Turn


def expire(group: Group, event: ExpireOffsets, turn: Turn) -> None:
    """The periodic look. Offsets past their time go; an Empty group without offsets goes with them."""
    gone = _late(group, event, turn)
    _drop(group, gone, turn)
    if gone:
        turn.note(notes.OFFSETS_EXPIRED, group.fields(offsets=len(gone)))
    is_over = group.state is GroupState.EMPTY and not group.offsets and not group.members.pending
    if is_over and (gone or not group.is_vacant):
        _die(group, turn, offsets=len(gone))


def remove(group: Group, event: Remove, turn: Turn) -> None:
    """DeleteGroups: an Empty group goes with all its offsets."""
    if group.is_vacant:
        turn.refuse(event.token, ErrorCode.GROUP_ID_NOT_FOUND)
    elif group.state is not GroupState.EMPTY:
        turn.refuse(event.token, ErrorCode.NON_EMPTY_GROUP)
    else:
        offsets = list(group.offsets)
        _drop(group, offsets, turn)
        _die(group, turn, offsets=len(offsets))
        turn.reply(event.token, ErrorCode.NONE)


def topics_gone(group: Group, event: TopicsGone, turn: Turn) -> None:
    _drop(group, [key for key in group.offsets if key[0] in event.topics], turn)


def _late(group: Group, event: ExpireOffsets, turn: Turn) -> list[tuple[str, int]]:
    base_ms = _base_ms(group)
    if base_ms is None:
        return []
    late = [key for key, value in group.offsets.items() if _is_late(value, base_ms, event, turn)]
    return [(topic, partition) for topic, partition in late if not group.subscribes(topic)]


def _base_ms(group: Group) -> Callable[[OffsetValue], int] | None:
    """From when the retention of an offset counts; None while nothing may expire."""
    state_ms = group.state_ms
    if not group.protocol_type:
        return _commit_ms  # a group of simple consumers
    if group.state is GroupState.EMPTY:
        return _commit_ms if state_ms == -1 else lambda _: state_ms
    is_known = group.state is GroupState.STABLE and group.is_consumer and group.subscribed_topics() is not None
    return _commit_ms if is_known else None


def _commit_ms(value: OffsetValue) -> int:
    return value.commit_ms


def _is_late(value: OffsetValue, base_ms: Callable[[OffsetValue], int], event: ExpireOffsets, turn: Turn) -> bool:
    if value.expire_ms is not None:
        return turn.wall_ms >= value.expire_ms
    return turn.wall_ms - base_ms(value) >= event.retention_ms


def _drop(group: Group, keys: list[tuple[str, int]], turn: Turn) -> None:
    for topic, partition in keys:
        group.record(OffsetRecord(group.group_id, topic, partition, None), turn)


def _die(group: Group, turn: Turn, *, offsets: int) -> None:
    for member_id in group.members.pending:
        turn.disarm(pending_timer(member_id))
    group.members.pending.clear()
    group.record(GroupRecord(group.group_id, None), turn)
    group.move(GroupState.DEAD, turn.wall_ms)
    turn.note(notes.DELETED, group.fields(offsets=offsets))
