"""Which members are alive: Heartbeat (the hottest path of the broker), and the timers of sessions and pending ids.

Laws
    G3   A stale member, instance or generation changes nothing and gets its code.
    R28  A member is removed when its deadline has passed. A heartbeat moves the deadline and touches no timer: a timer
         that fires earlier than the deadline is set again.
    A member whose JoinGroup or SyncGroup waits counts as alive; one that waits for its first generation does so for
    `new_member_join_ms` at most.
    A timer of a member that is no longer there changes nothing.
"""

from __future__ import annotations

from rota.coordinator.group import notes, rebalance
from rota.coordinator.group.effects import Step
from rota.coordinator.group.events import InstanceId, MemberId
from rota.coordinator.group.members import UNARMED, Member
from rota.coordinator.group.state import ClassicGroup
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember, Trigger

# bound once: looking a member of an enum up costs as much as the rest of a heartbeat
_NONE = ErrorCode.NONE
_ILLEGAL_GENERATION = ErrorCode.ILLEGAL_GENERATION
_REBALANCE_IN_PROGRESS = ErrorCode.REBALANCE_IN_PROGRESS
_PREPARING = GroupState.PREPARING


def heartbeat(
    group: ClassicGroup, member_id: MemberId, instance_id: InstanceId | None, generation: int, now_ms: int
) -> ErrorCode:
    """Keep a member alive. Return NONE, REBALANCE_IN_PROGRESS (join again), or why the member is refused."""
    member = group.members.by_id.get(member_id)
    if member is None or (instance_id is not None and member.instance_id != instance_id):
        return group.check_member(member_id, instance_id)
    if generation != group.generation:
        return _ILLEGAL_GENERATION
    if group.state is _PREPARING:
        member.alive(now_ms)
        return _REBALANCE_IN_PROGRESS
    member.deadline_ms = now_ms + member.session_ms
    return _NONE


def timer_fired(group: ClassicGroup, key: str, step: Step) -> None:
    """Act on the timer of a member's session or of a pending member id."""
    kind, _, member_id = key.partition(":")
    assert kind in ("session", "pending"), key
    if kind == "session":
        _session_timer_fired(group, MemberId(member_id), step)
    else:
        _pending_timer_fired(group, MemberId(member_id), step)


def _session_timer_fired(group: ClassicGroup, member_id: MemberId, step: Step) -> None:
    member = group.members.get(member_id)
    if member is None:
        return
    member.armed_ms = UNARMED
    waits = member.join is not None or member.sync is not None
    if waits and not member.is_new:
        return  # its session and timer restart with the delayed reply
    if step.now_ms < member.deadline_ms:
        group.set_deadline(member, member.deadline_ms, step)
    else:
        _expire_member(group, member, step)


def _expire_member(group: ClassicGroup, member: Member, step: Step) -> None:
    reason = f"removing member {member.member_id} on heartbeat expiration."
    fields = group.fields(member=member.member_id, generation=group.generation, reason=reason)
    expired = (member.as_event_member(),)
    step.note(notes.FAILED, fields, members=expired)
    group.expel_member(member, step)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING):
        rebalance.prepare(group, step, reason, trigger=Trigger.MEMBER_EXPIRED, members=expired)
    else:
        rebalance.complete_if_all_joined(group, step, even_initial=True)


def _pending_timer_fired(group: ClassicGroup, member_id: MemberId, step: Step) -> None:
    if member_id not in group.members.pending:
        return
    reason = "it was given its member id and did not join with it"
    expired = (EventMember(member_id=member_id),)
    step.note(notes.PENDING_EXPIRED, group.fields(member=member_id), members=expired, reason=reason)
    group.remove_member(member_id, step)
    rebalance.complete_if_all_joined(group, step, even_initial=True)
