"""A static instance comes back without its member id: it takes the place of the member it was (KIP-345, R23).

Laws
    G1  The old member id is fenced from then on: its parked requests are answered FENCED_INSTANCE_ID.
    In Stable a takeover that leaves the chosen assignor as it is costs no rebalance and no generation: the new id is
    appended with the assignment that its instance has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.coordinator.group import notes
from rota.coordinator.group.effects import GroupRecord, Joined, Synced
from rota.coordinator.group.events import Join, MemberId
from rota.coordinator.group.members import UNARMED, Member
from rota.coordinator.group.rebalance import current_value, joined, prepare, prepare_or_complete
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group
    from rota.coordinator.group.turn import Turn


def take_over(group: Group, event: Join, old: Member, turn: Turn) -> None:
    fields = group.fields(member=event.fresh_id, replaced=old.member_id, instance=event.instance_id)
    turn.note(notes.STATIC_REPLACED, fields)
    old_leader = group.leader_or_none
    _fence(group, old, turn)
    member = group.members.replace(old, event.fresh_id)
    group.members.update(member, event)
    group.members.park_join(member, event.token)
    group.keep_alive(member, turn)
    what = f"static member {member.member_id} with instance id {event.instance_id}"
    if group.state is GroupState.COMPLETING:
        # the leader may have been told of the old id: what it assigns would not reach the new one
        prepare(group, turn, f"Updating metadata for {what}", event.reason)
    elif group.state is GroupState.STABLE and group.members.select_protocol() == group.protocol:
        _keep_generation(group, event, member, old_leader, turn)
    else:
        reason = f"Group's selectedProtocol will change because {what} joined with change of protocol"
        prepare_or_complete(group, turn, reason, event.reason)


def _fence(group: Group, old: Member, turn: Turn) -> None:
    if old.armed_ms != UNARMED:
        turn.disarm(old.timer)
    token = group.members.take_join(old)
    if token is not None:
        turn.reply(token, Joined(member_id=old.member_id, error=ErrorCode.FENCED_INSTANCE_ID))
    if old.sync is not None:
        turn.reply(old.sync, Synced(error=ErrorCode.FENCED_INSTANCE_ID))
        old.sync = None


def _keep_generation(group: Group, event: Join, member: Member, old_leader: MemberId, turn: Turn) -> None:
    turn.note(notes.STATIC_KEPT, group.fields(member=member.member_id, generation=group.generation))
    group.record(GroupRecord(group.group_id, current_value(group, generation=group.generation, assigned=True)), turn)
    group.members.take_join(member)
    turn.reply(event.token, _current(group, event, member, old_leader))


def _current(group: Group, event: Join, member: Member, old_leader: MemberId) -> Joined:
    """A leader that cannot skip the assignment (before KIP-814) is told its old id leads, so that it only fetches."""
    told = joined(group, member)
    leads = group.members.leader == member.member_id
    return Joined(
        member_id=told.member_id,
        generation=told.generation,
        protocol_type=told.protocol_type,
        protocol=told.protocol,
        leader=told.leader if event.can_skip_assignment else old_leader,
        skip_assignment=leads and event.can_skip_assignment,
        members=told.members if event.can_skip_assignment else (),
    )
