"""SyncGroup: the leader sends the assignment, every member fetches its part.

Laws
    G1   The assignment of a generation is taken once, from its leader, and is durable before a member gets its part.
    G3   A stale member, instance, generation or assignor changes nothing and gets its code.
    G4   A SyncGroup that is sent again supersedes the one that waits, which is answered REBALANCE_IN_PROGRESS.
    CO3  As in Kafka an assignment that makes the group's record too large is answered UNKNOWN_SERVER_ERROR to every
         member that waits, and the group rebalances: no part of it is handed out or kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.coordinator.group import notes
from rota.coordinator.group.effects import Step, Synced
from rota.coordinator.group.events import MemberId, Sync
from rota.coordinator.group.members import Member
from rota.coordinator.group.moves import UNKNOWN, moves
from rota.coordinator.group.rebalance import SYNC, prepare, refuse_waiting_syncs
from rota.coordinator.group.state import ClassicGroup
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger


def sync(group: ClassicGroup, event: Sync, step: Step) -> None:
    """Decide on a SyncGroup."""
    error = _check(group, event)
    if error is not ErrorCode.NONE:
        group.note_fencing(error, event.member_id, event.instance_id, "sync-group", step)
        step.refuse(event.token, Synced(error=error))
        return
    member = group.members.by_id[event.member_id]
    _mark_synced(group, member, step)
    if group.state is GroupState.STABLE:
        step.reply(event.token, synced(group, member))
        return
    if member.sync is not None:
        step.refuse(member.sync, Synced(error=ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync = event.token
    if group.members.leader == event.member_id:
        _take_assignment(group, event, step)


def _check(group: ClassicGroup, event: Sync) -> ErrorCode:
    error = group.check_member(event.member_id, event.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(event.protocol_type, group.protocol_type or None) or _differ(event.protocol, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _differ(requested: str | None, ours: str | None) -> bool:
    """Older versions have no such field, and a group may have none yet: both are no contradiction."""
    return requested is not None and ours is not None and requested != ours


def _mark_synced(group: ClassicGroup, member: Member, step: Step) -> None:
    unsynced = group.members.unsynced
    if member.member_id in unsynced:
        del unsynced[member.member_id]
        if not unsynced:
            step.disarm(SYNC)


def synced(group: ClassicGroup, member: Member) -> Synced:
    """Return the reply to a member's SyncGroup in a generation that has its assignment."""
    return Synced(protocol_type=group.protocol_type or None, protocol=group.protocol, assignment=member.assignment)


def _take_assignment(group: ClassicGroup, event: Sync, step: Step) -> None:
    """Record the leader's assignment: a member that it left out gets an empty part, unknown members are ignored."""
    members, assignments = group.members, dict(event.assignments)
    parts = [assignments.get(member.member_id, b"") for member in members]
    parts_bytes = sum(map(len, parts))
    if not (
        group.can_fit_in_record(members.record_bytes + parts_bytes)  # as nearly always: no member has to be looked at
        or group.can_fit_in_record(members.bytes_with(group.protocol) + parts_bytes)
    ):
        _refuse_assignment(group, event, step)
        return
    _note_assignment(group, assignments, step)
    for member, part in zip(members, parts, strict=True):
        member.assignment = part
    group.transition_to(GroupState.STABLE, step.wall_ms)
    group.record_group(group.value(generation=group.generation, assigned=True), step)
    for member in members:
        if member.sync is not None:
            step.reply(member.sync, synced(group, member))
            member.sync = None
            group.keep_alive(member, step)


def _note_assignment(group: ClassicGroup, assignments: Mapping[MemberId, bytes], step: Step) -> None:
    """Emit the events of the assignment: its duration, and the partitions that it moves."""
    members, leader = group.members, group.members.by_id[group.leader_or_none]
    fields = group.fields(
        leader=leader.member_id,
        generation=group.generation,
        members=len(members),
        static_members=len(members.by_instance),
    )
    before = group.assigned if group.assigned is not None or group.generation > 1 else {}
    group.assigned = {member.member_id: assignments.get(member.member_id, b"") for member in members}
    moved = moves(before, group.assigned) if group.is_consumer else UNKNOWN
    step.note(
        notes.ASSIGNED,
        fields,
        members=(leader.as_event_member(),),
        duration_ms=step.now_ms - group.phase_ms,
        protocol=group.protocol or "",
        moves=moved.by_member,
        partition_count=moved.partition_count,
    )


def _refuse_assignment(group: ClassicGroup, event: Sync, step: Step) -> None:
    refuse_waiting_syncs(group, ErrorCode.UNKNOWN_SERVER_ERROR, step)
    error = "Error UNKNOWN_SERVER_ERROR when storing group assignment during SyncGroup"
    leader = (group.members.by_id[event.member_id].as_event_member(),)
    reason = f"{error} (member: {event.member_id})."
    prepare(group, step, reason, trigger=Trigger.ASSIGNMENT_TOO_LARGE, members=leader)
