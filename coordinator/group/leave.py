"""LeaveGroup, single and batch (KIP-345), with the members' own reasons (KIP-800).

Laws
    Each leaver gets its own code, in the order asked. One rebalance follows, however many left.
    G4  What a leaver had parked is answered UNKNOWN_MEMBER_ID: it may come again as a new member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.coordinator.group import notes
from rota.coordinator.group.effects import Left
from rota.coordinator.group.events import Leave, Leaver, MemberId
from rota.coordinator.group.members import pending_timer
from rota.coordinator.group.rebalance import complete_if_all_joined, prepare
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group
    from rota.coordinator.group.turn import Turn


def leave(group: Group, event: Leave, turn: Turn) -> None:
    if group.state is GroupState.DEAD:
        turn.refuse(event.token, Left(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    answers = tuple((who.member_id, who.instance_id, _leave_one(group, who, turn)) for who in event.leavers)
    gone = [member_id for member_id, _, error in answers if error is ErrorCode.NONE]
    if gone:
        _go_on_without(group, event, gone, turn)
    turn.reply(event.token, Left(ErrorCode.NONE, answers))


def _leave_one(group: Group, who: Leaver, turn: Turn) -> ErrorCode:
    if not who.member_id:
        holder = group.members.by_instance.get(who.instance_id) if who.instance_id is not None else None
        return ErrorCode.UNKNOWN_MEMBER_ID if holder is None else _remove(group, holder, who, turn)
    if who.member_id in group.members.pending:
        turn.note(notes.PENDING_LEFT, group.fields(member=who.member_id, client_reason=who.reason))
        turn.disarm(pending_timer(who.member_id))
        group.forget(who.member_id, turn)
        return ErrorCode.NONE
    error = group.members.check(who.member_id, who.instance_id)
    group.note_fencing(error, who.member_id, who.instance_id, "leave-group", turn)
    return error if error is not ErrorCode.NONE else _remove(group, who.member_id, who, turn)


def _remove(group: Group, member_id: MemberId, who: Leaver, turn: Turn) -> ErrorCode:
    fields = group.fields(member=member_id, instance=who.instance_id, client_reason=who.reason)
    turn.note(notes.LEFT, fields)
    group.dismiss(group.members.by_id[member_id], turn)
    return ErrorCode.NONE


def _go_on_without(group: Group, event: Leave, gone: list[MemberId], turn: Turn) -> None:
    if group.state in (GroupState.STABLE, GroupState.COMPLETING):
        reasons = dict.fromkeys(who.reason for who in event.leavers if who.reason)
        reason = f"explicit `LeaveGroup` request for ({', '.join(gone)}) members."
        prepare(group, turn, reason, "; ".join(reasons) or None)
    else:
        complete_if_all_joined(group, turn)
