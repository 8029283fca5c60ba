"""SyncGroup: the leader brings the assignment, everybody fetches its part.

Laws
    G1  The assignment of a generation is taken once, from its leader, and is durable before anybody is told its part.
    G3  A stale member, instance, generation or assignor changes nothing and gets its code.
    G4  A SyncGroup that comes again supersedes the one that waits, which is answered REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.coordinator.group import notes
from rota.coordinator.group.effects import GroupRecord, Synced
from rota.coordinator.group.events import Sync
from rota.coordinator.group.members import Member
from rota.coordinator.group.rebalance import SYNC, current_value
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group
    from rota.coordinator.group.turn import Turn


def sync(group: Group, event: Sync, turn: Turn) -> None:
    error = _check(group, event)
    if error is not ErrorCode.NONE:
        group.note_fencing(error, event.member_id, event.instance_id, "sync-group", turn)
        turn.refuse(event.token, Synced(error=error))
        return
    member = group.members.by_id[event.member_id]
    _heard_from(group, member, turn)
    if group.state is GroupState.STABLE:
        turn.reply(event.token, _part(group, member))
        return
    if member.sync is not None:
        turn.refuse(member.sync, Synced(error=ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync = event.token
    if group.members.leader == event.member_id:
        _assign(group, event, turn)


def _check(group: Group, event: Sync) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.members.check(event.member_id, event.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(event.protocol_type, group.protocol_type or None) or _differ(event.protocol, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _differ(asked: str | None, ours: str | None) -> bool:
    """Older versions do not say, and a group may have none yet: both are no contradiction."""
    return asked is not None and ours is not None and asked != ours


def _heard_from(group: Group, member: Member, turn: Turn) -> None:
    unsynced = group.members.unsynced
    if member.member_id in unsynced:
        del unsynced[member.member_id]
        if not unsynced:
            turn.disarm(SYNC)


def _part(group: Group, member: Member) -> Synced:
    return Synced(protocol_type=group.protocol_type or None, protocol=group.protocol, assignment=member.assignment)


def _assign(group: Group, event: Sync, turn: Turn) -> None:
    """The leader's word: whom it forgot gets an empty part, whom it invented is ignored."""
    members = group.members
    static = len(members.by_instance)
    fields = group.fields(
        leader=event.member_id, generation=group.generation, members=len(members), static_members=static
    )
    turn.note(notes.ASSIGNED, fields)
    parts = dict(event.assignments)
    for member in members:
        member.assignment = parts.get(member.member_id, b"")
    group.move(GroupState.STABLE, turn.wall_ms)
    group.record(GroupRecord(group.group_id, current_value(group, generation=group.generation, assigned=True)), turn)
    for member in members:
        if member.sync is not None:
            turn.reply(member.sync, _part(group, member))
            member.sync = None
            group.keep_alive(member, turn)
