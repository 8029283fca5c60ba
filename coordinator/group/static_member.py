"""A static instance joins without its member id: it replaces the member that it was (KIP-345, R23).

Laws
    G1  The old member id is fenced from then on: its waiting requests are answered FENCED_INSTANCE_ID.
    In Stable a replacement that does not change the chosen assignor costs no rebalance and no generation: the new id is
    appended with the assignment that its instance has.
"""

from __future__ import annotations

from rota.coordinator.group import notes
from rota.coordinator.group.effects import Joined, Step, Synced
from rota.coordinator.group.events import Join, MemberId
from rota.coordinator.group.members import UNARMED, Member, event_member
from rota.coordinator.group.rebalance import joined, prepare, prepare_or_complete
from rota.coordinator.group.state import ClassicGroup
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger


def replace_static_member(group: ClassicGroup, event: Join, old: Member, step: Step) -> None:
    """Give the instance of `old` the id `event.fresh_id`; rebalance unless its generation can go on."""
    fields = group.fields(member=event.fresh_id, replaced=old.member_id, instance=event.instance_id)
    replacing = event_member(event, event.fresh_id)
    step.note(notes.STATIC_REPLACED, fields, members=(replacing, old.as_event_member()), client_reason=event.reason)
    old_leader = group.leader_or_none
    _fence(group, old, step)
    member = group.members.replace(old, event.fresh_id)
    group.members.update(member, event)
    group.members.park_join(member, event.token)
    member.joined_ms = step.now_ms
    if group.assigned is not None:
        ids = {old.member_id: member.member_id}
        group.assigned = {ids.get(member_id, member_id): part for member_id, part in group.assigned.items()}
    group.keep_alive(member, step)
    subject = f"static member {member.member_id} with instance id {event.instance_id}"
    if group.state is GroupState.COMPLETING:
        # the leader may have been sent the old id: what it assigns would not reach the new one
        reason, trigger = f"Updating metadata for {subject}", Trigger.STATIC_MEMBER_REPLACED
        prepare(group, step, reason, event.reason, trigger=trigger, members=(replacing,))
    elif _can_keep_generation(group):
        _keep_generation(group, event, member, old_leader, step)
    else:
        reason = f"Group's selectedProtocol will change because {subject} joined with change of protocol"
        trigger = Trigger.STATIC_MEMBER_REPLACED
        prepare_or_complete(group, step, reason, event.reason, trigger=trigger, members=(replacing,))


def _fence(group: ClassicGroup, old: Member, step: Step) -> None:
    if old.armed_ms != UNARMED:
        step.disarm(old.timer)
    token = group.members.take_join(old)
    if token is not None:
        step.reply(token, Joined(member_id=old.member_id, error=ErrorCode.FENCED_INSTANCE_ID))
    if old.sync is not None:
        step.reply(old.sync, Synced(error=ErrorCode.FENCED_INSTANCE_ID))
        old.sync = None


def _can_keep_generation(group: ClassicGroup) -> bool:
    members = group.members
    if group.state is not GroupState.STABLE or members.select_protocol() != group.protocol:
        return False
    return group.fits_in_record(members.record_bytes + sum(len(member.assignment) for member in members))


def _keep_generation(group: ClassicGroup, event: Join, member: Member, old_leader: MemberId, step: Step) -> None:
    fields = group.fields(member=member.member_id, generation=group.generation)
    step.note(notes.STATIC_KEPT, fields, members=(event_member(event, member.member_id),))
    group.record_group(group.value(generation=group.generation, assigned=True), step)
    group.members.take_join(member)
    step.reply(event.token, _joined_again(group, event, member, old_leader))


def _joined_again(group: ClassicGroup, event: Join, member: Member, old_leader: MemberId) -> Joined:
    """A leader that cannot skip the assignment (before KIP-814) is sent its old id as leader, so that it only syncs."""
    body = joined(group, member)
    leads = group.members.leader == member.member_id
    return Joined(
        member_id=body.member_id,
        generation=body.generation,
        protocol_type=body.protocol_type,
        protocol=body.protocol,
        leader=body.leader if event.can_skip_assignment else old_leader,
        skip_assignment=leads and event.can_skip_assignment,
        members=body.members if event.can_skip_assignment else (),
    )
