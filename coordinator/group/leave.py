"""LeaveGroup, single and batch (KIP-345), with the members' own reasons (KIP-800).

Laws
    Each leaving member gets its own code, in the order of the request. One rebalance follows, however many left.
    G4  The delayed requests of a leaving member are answered UNKNOWN_MEMBER_ID: it may join again as a new member.
"""

from __future__ import annotations

from rota.coordinator.group import notes
from rota.coordinator.group.effects import LeaveResult, Step
from rota.coordinator.group.events import Leave, LeavingMember, MemberId
from rota.coordinator.group.members import pending_timer
from rota.coordinator.group.rebalance import complete_if_all_joined, prepare
from rota.coordinator.group.state import ClassicGroup
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember, Trigger


def leave(group: ClassicGroup, event: Leave, step: Step) -> None:
    """Decide on a LeaveGroup."""
    if group.state is GroupState.DEAD:
        step.refuse(event.token, LeaveResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    members: list[EventMember] = []
    answers = tuple(
        (identity.member_id, identity.instance_id, _leave(group, identity, members, step)) for identity in event.members
    )
    left = [member_id for member_id, _, error in answers if error is ErrorCode.NONE]
    if left:
        _rebalance(group, event, left, members, step)
    step.reply(event.token, LeaveResult(ErrorCode.NONE, answers))


def _leave(group: ClassicGroup, identity: LeavingMember, left: list[EventMember], step: Step) -> ErrorCode:
    """Remove one member and add it to `left`; return an error code if it is unknown or fenced."""
    if not identity.member_id:
        holder = group.members.by_instance.get(identity.instance_id) if identity.instance_id is not None else None
        return ErrorCode.UNKNOWN_MEMBER_ID if holder is None else _remove(group, holder, identity, left, step)
    if identity.member_id in group.members.pending:
        fields = group.fields(member=identity.member_id, client_reason=identity.reason)
        step.note(notes.PENDING_LEFT, fields, members=(EventMember(member_id=identity.member_id),))
        step.disarm(pending_timer(identity.member_id))
        group.remove_member(identity.member_id, step)
        return ErrorCode.NONE
    error = group.members.check(identity.member_id, identity.instance_id)
    group.note_fencing(error, identity.member_id, identity.instance_id, "leave-group", step)
    return error if error is not ErrorCode.NONE else _remove(group, identity.member_id, identity, left, step)


def _remove(
    group: ClassicGroup, member_id: MemberId, identity: LeavingMember, left: list[EventMember], step: Step
) -> ErrorCode:
    member = group.members.by_id[member_id]
    left.append(member.as_event_member())
    fields = group.fields(member=member_id, instance=identity.instance_id, client_reason=identity.reason)
    step.note(notes.LEFT, fields, members=left[-1:])
    group.expel_member(member, step)
    return ErrorCode.NONE


def _rebalance(group: ClassicGroup, event: Leave, left: list[MemberId], members: list[EventMember], step: Step) -> None:
    if group.state in (GroupState.STABLE, GroupState.COMPLETING):
        reasons = dict.fromkeys(identity.reason for identity in event.members if identity.reason)
        reason = f"explicit `LeaveGroup` request for ({', '.join(left)}) members."
        client_reason = "; ".join(reasons) or None
        prepare(group, step, reason, client_reason, trigger=Trigger.MEMBER_LEFT, members=members)
    else:
        complete_if_all_joined(group, step)
