"""JoinGroup, branch by branch (R20-R24): the admission of members, and the effect of a join in each state.

Laws
    G2   A response with the current generation has the recorded generation and its recorded members.
    G3   An unknown member, a fenced instance or foreign protocols change nothing and get their code.
    G3a  Soon after the group was loaded an unknown member gets MEMBER_ID_REQUIRED with a new id: the last coordinator
         may have known it.
    G4   A JoinGroup that is sent again supersedes the one that waits, which is answered REBALANCE_IN_PROGRESS.
    CO3  Only the member whose metadata would make the group's record too large to be written is refused.
    G1   A static instance that joins without its member id replaces the member that it was (KIP-345, R23). The old id
         is fenced from then on: its waiting requests are answered FENCED_INSTANCE_ID.
    In Stable a replacement that does not change the chosen assignor costs no rebalance and no generation: the new id is
    appended with the assignment that its instance has.
    A group is created by a JoinGroup without a member id, also by one that is refused; as in Kafka an empty record of
    it is appended then.
"""

from __future__ import annotations

from typing import Final

from rota.coordinator.group import notes
from rota.coordinator.group.effects import GroupValue, Joined, Step, Synced
from rota.coordinator.group.events import NO_MEMBER, Join, MemberId
from rota.coordinator.group.members import (
    UNARMED,
    Member,
    bytes_at_most,
    event_member,
    member_of,
    pending_timer,
)
from rota.coordinator.group.rebalance import complete_if_all_joined, joined, prepare, prepare_or_complete
from rota.coordinator.group.state import ClassicGroup
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger

PROTOCOLS_NAMED_MAX: Final = 5  # in a reason
PENDING_MEMBERS_MAX: Final = 10_000  # ids that were given and not used yet; beyond it the oldest is forgotten

JOIN_AGAIN_MS: Final = 30_000  # after a group was loaded: an unknown id in a JoinGroup is answered with a new one


def join(group: ClassicGroup, event: Join, step: Step) -> None:
    """Decide on a JoinGroup."""
    if not group.config.session_min_ms <= event.session_ms <= group.config.session_max_ms:
        _refuse(event, event.member_id, ErrorCode.INVALID_SESSION_TIMEOUT, step)
    elif group.is_vacant and event.member_id:
        _refuse(event, event.member_id, _no_such_group(group), step)
    else:
        if group.is_vacant and group.state is not GroupState.DEAD:
            _create_group(group, step)
        _admit(group, event, step)


def _no_such_group(group: ClassicGroup) -> ErrorCode:
    is_dead = group.state is GroupState.DEAD
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_dead else ErrorCode.UNKNOWN_MEMBER_ID


def _create_group(group: ClassicGroup, step: Step) -> None:
    group.state_ms = step.wall_ms
    value = GroupValue(protocol_type="", generation=0, protocol=None, leader=None, state_ms=step.wall_ms)
    group.record_group(value, step)


def _admit(group: ClassicGroup, event: Join, step: Step) -> None:
    """Refuse a JoinGroup that may not come in; hand the others to the branch of their member id."""
    if group.state is GroupState.DEAD:
        _refuse(event, event.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE, step)
    elif not _has_room(group, event.member_id):
        _note_refusal(group, event, notes.GROUP_FULL, ErrorCode.GROUP_MAX_SIZE_REACHED, step)
        group.remove_member(event.member_id, step)
        _refuse(event, NO_MEMBER, ErrorCode.GROUP_MAX_SIZE_REACHED, step)
        complete_if_all_joined(group, step)  # the others may have waited for this one only
    elif not _fits_protocols(group, event):
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        _note_refusal(group, event, notes.PROTOCOLS_REFUSED, error, step, _protocols_differ(group, event))
        _refuse(event, event.member_id, error, step)
    elif not _fits_record(group, event):
        _note_refusal(group, event, notes.RECORD_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR, step)
        _refuse(event, event.member_id, ErrorCode.UNKNOWN_SERVER_ERROR, step)
    elif event.member_id == NO_MEMBER:
        _join_new_member(group, event, step)
    elif event.member_id in group.members.pending:
        _join_pending_member(group, event, step)
    else:
        _join_known_member(group, event, step)


def _note_refusal(group: ClassicGroup, event: Join, note: str, error: ErrorCode, step: Step, reason: str = "") -> None:
    group.note_refusal(note, event_member(event, event.member_id), "join-group", error, step, reason or note)


def _protocols_differ(group: ClassicGroup, event: Join) -> str:
    """Return, for the timeline, which assignors the member and the group support."""
    supported = ", ".join(proto.name for proto in event.protocols[:PROTOCOLS_NAMED_MAX]) or "none"
    if event.protocol_type != group.protocol_type and group.members:
        return f"its protocol type is {event.protocol_type or 'empty'}, that of the group is {group.protocol_type}"
    shared = [name for name, count in group.members.supporters.items() if count == len(group.members)]
    return f"it supports {supported}; the group's members share {', '.join(shared[:PROTOCOLS_NAMED_MAX]) or 'none'}"


def _has_room(group: ClassicGroup, member_id: MemberId) -> bool:
    """While joins are awaited the waiting ones count, so that of a group that is too large the last to rejoin leave."""
    members, size_max = group.members, group.config.group_size_max
    member = members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING:
        return (member is not None and member.join is not None) or members.awaiting_join < size_max
    return member is not None or len(members) < size_max


def _fits_protocols(group: ClassicGroup, event: Join) -> bool:
    if group.state is GroupState.EMPTY:
        return bool(event.protocol_type and event.protocols)
    return event.protocol_type == group.protocol_type and group.members.supports(event.protocols)


def _fits_record(group: ClassicGroup, event: Join) -> bool:
    members = group.members
    member_id = event.member_id
    if not member_id and event.instance_id is not None:
        member_id = members.by_instance.get(event.instance_id, NO_MEMBER)
    old = members.get(member_id)
    if old is not None and old.is_repeated_by(event):  # nearly every JoinGroup of a large group; for speed
        return group.can_fit_in_record(members.record_bytes, protocol_type=event.protocol_type)
    at_most = members.record_bytes + bytes_at_most(event)
    if group.can_fit_in_record(at_most, protocol_type=event.protocol_type):  # as nearly always; for speed
        return True
    new = member_of(event, event.member_id or event.fresh_id)
    members_bytes = members.record_bytes + new.record_bytes - (0 if old is None else old.record_bytes)
    return group.can_fit_in_record(members_bytes, new, event.protocol_type)


# ---- members without an id


def _join_new_member(group: ClassicGroup, event: Join, step: Step) -> None:
    if event.instance_id is not None:
        holder = group.members.by_instance.get(event.instance_id)
        if holder is not None:
            _replace_static_member(group, event, group.members.by_id[holder], step)
        else:
            _add(group, event, event.fresh_id, notes.STATIC_ADDED, step)
    elif event.requires_known_id:
        _require_member_id(group, event, step)
    else:
        _add(group, event, event.fresh_id, notes.MEMBER_ADDED, step)


def _require_member_id(group: ClassicGroup, event: Join, step: Step) -> None:
    """Return a member id first (KIP-394), so that a client that times out and retries leaves no dead member."""
    step.note(notes.MEMBER_ID_REQUIRED, group.fields(member=event.fresh_id, client_id=event.client_id))
    pending = group.members.pending
    if len(pending) >= PENDING_MEMBERS_MAX:
        oldest = next(iter(pending))
        step.disarm(pending_timer(oldest))
        group.remove_member(oldest, step)
    pending[event.fresh_id] = None
    step.arm(pending_timer(event.fresh_id), step.now_ms + event.session_ms)
    _refuse(event, event.fresh_id, ErrorCode.MEMBER_ID_REQUIRED, step)


def _join_pending_member(group: ClassicGroup, event: Join, step: Step) -> None:
    if event.instance_id is not None:  # static members never get an id in advance: Kafka calls it its own error
        _refuse(event, NO_MEMBER, ErrorCode.UNKNOWN_SERVER_ERROR, step)
        return
    step.disarm(pending_timer(event.member_id))
    _add(group, event, event.member_id, notes.PENDING_JOINED, step)


def _add(group: ClassicGroup, event: Join, member_id: MemberId, note: str, step: Step) -> None:
    joining = event_member(event, member_id)
    fields = group.fields(member=member_id, instance=event.instance_id, client_id=event.client_id)
    step.note(note, fields, members=(joining,), client_reason=event.reason)
    if not group.members:
        group.protocol_type = event.protocol_type
    if group.initial is not None:
        group.initial.grew = True
    group.initial_delay_min_ms = event.initial_delay_min_ms
    member = member_of(event, member_id)
    group.members.add(member)
    group.members.park_join(member, event.token)
    member.joined_ms = step.now_ms
    # it does not know its id yet and cannot send heartbeats; and its death cannot be seen while it waits
    group.set_deadline(member, step.now_ms + group.config.new_member_join_ms, step)
    reason = f"Adding new member {member_id} with group instance id {event.instance_id}"
    prepare_or_complete(group, step, reason, event.reason, trigger=Trigger.MEMBER_JOINED, members=(joining,))


# ---- members with an id


def _join_known_member(group: ClassicGroup, event: Join, step: Step) -> None:
    error = group.members.check(event.member_id, event.instance_id)
    if error is ErrorCode.UNKNOWN_MEMBER_ID and _is_possibly_lost(group, event, step):
        _require_member_id(group, event, step)
        return
    if error is not ErrorCode.NONE:
        group.note_fencing(error, event.member_id, event.instance_id, "join-group", step)
        _refuse(event, event.member_id, error, step)
        return
    member = group.members.by_id[event.member_id]
    reason = _rebalance_reason(group, event, member)
    if reason is None:
        step.reply(event.token, joined(group, member))
    else:
        _rejoin(group, event, member, reason, step)


def _is_possibly_lost(group: ClassicGroup, event: Join, step: Step) -> bool:
    """Whether the id may be of a member whose first generation the last coordinator did not live to record.

    librdkafka waits for seconds after UNKNOWN_MEMBER_ID, and joins at once with an id that it is given instead.
    """
    is_recent = group.loaded_ms is not None and step.now_ms < group.loaded_ms + JOIN_AGAIN_MS
    return is_recent and event.instance_id is None and event.requires_known_id


def _rebalance_reason(group: ClassicGroup, event: Join, member: Member) -> str | None:
    """Return why this join needs a rebalance. None: nothing changed, the reply is the member's current generation."""
    if group.state is GroupState.PREPARING:
        return "joins during the rebalance"
    if group.state is GroupState.STABLE and group.members.leader == event.member_id:
        # the leader may know of changes that no member's metadata shows: partitions that were added
        return f"Leader {event.member_id} re-joining group during {group.state.value}"
    if member.protocols != event.protocols:
        return f"Updating metadata for member {event.member_id} during {group.state.value}"
    return None


def _rejoin(group: ClassicGroup, event: Join, member: Member, reason: str, step: Step) -> None:
    group.members.update(member, event)
    superseded = group.members.park_join(member, event.token)
    if superseded is None:
        member.joined_ms = step.now_ms
    if superseded is not None:
        step.refuse(superseded, Joined(member_id=event.member_id, error=ErrorCode.REBALANCE_IN_PROGRESS))
    if group.state is GroupState.PREPARING:
        complete_if_all_joined(group, step)
        return
    is_leader = group.state is GroupState.STABLE and group.members.leader == event.member_id
    trigger = Trigger.LEADER_REJOINED if is_leader else Trigger.METADATA_CHANGED
    prepare(group, step, reason, event.reason, trigger=trigger, members=(event_member(event, event.member_id),))


def _refuse(event: Join, member_id: MemberId, error: ErrorCode, step: Step) -> None:
    step.refuse(event.token, Joined(member_id=member_id, error=error))


# ---- static members that come back


def _replace_static_member(group: ClassicGroup, event: Join, old: Member, step: Step) -> None:
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
    return group.can_fit_in_record(members.record_bytes + sum(len(member.assignment) for member in members))


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
