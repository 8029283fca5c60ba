"""The rebalance: prepare, wait for joins, begin a generation, wait for its syncs (R24, R25).

Laws
    G2  A generation begins in one place, `_begin_generation`, one above the last, and is appended before any JoinGroup
        is answered with it.
    A group that was Empty waits `initial_rebalance_delay_ms`, and longer while members join, up to the rebalance
    timeout. Any other group waits until all members have joined, at most the largest rebalance timeout of its members;
    dynamic members that did not join are removed then, static ones stay until their session ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rota.coordinator.group import notes
from rota.coordinator.group.effects import Joined, Step, Synced
from rota.coordinator.group.members import UNARMED, Member
from rota.coordinator.group.state import ClassicGroup, InitialDelay
from rota.coordinator.group.transitions import GroupState
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember, Trigger

JOIN, SYNC = "join", "sync"  # timer keys
LAST_TO_JOIN_MAX: Final = 5  # members that the timeline names as those that the others waited for


def prepare_or_complete(
    group: ClassicGroup,
    step: Step,
    reason: str,
    client_reason: str | None = None,
    *,
    trigger: str,
    members: Sequence[EventMember],
) -> None:
    """Begin a rebalance or, when one is under way, end its join phase if every member has joined."""
    if group.state is GroupState.PREPARING:
        complete_if_all_joined(group, step)
    else:
        prepare(group, step, reason, client_reason, trigger=trigger, members=members)


def prepare(
    group: ClassicGroup,
    step: Step,
    reason: str,
    client_reason: str | None = None,
    *,
    trigger: str,
    members: Sequence[EventMember] = (),
) -> None:
    """Begin a rebalance: members have to join again. `members` are those that triggered it, for the timeline."""
    previous = group.state
    was_empty = previous is GroupState.EMPTY
    _refuse_syncs(group, step)
    if group.members.unsynced:
        group.members.unsynced.clear()
        step.disarm(SYNC)
    group.transition_to(GroupState.PREPARING, step.wall_ms)
    fields = group.fields(generation=group.generation, reason=reason, client_reason=client_reason)
    step.note(notes.PREPARING, fields, trigger=trigger, members=members, previous_state=previous.value)
    group.phase_ms = step.now_ms
    if was_empty:
        _wait_for_first_members(group, step)
    elif group.members.has_all_members_joined:
        complete(group, step)
    else:
        step.arm(JOIN, step.now_ms + group.members.rebalance_ms)


def complete_if_all_joined(group: ClassicGroup, step: Step, *, even_initial: bool = False) -> None:
    """End the join phase when every member has joined; not during the initial delay, unless `even_initial`."""
    if group.state is not GroupState.PREPARING or not group.members.has_all_members_joined:
        return
    if group.initial is None or even_initial:
        complete(group, step)


def join_timer_fired(group: ClassicGroup, step: Step) -> None:
    """Prolong an initial delay in which members joined, or end the join phase."""
    if group.state is not GroupState.PREPARING:
        return
    initial = group.initial
    if initial is None or not initial.grew or initial.remaining_ms == 0:
        complete(group, step, disarm=False)
        return
    delay_ms = min(_initial_delay_ms(group), initial.remaining_ms)
    group.initial = InitialDelay(delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
    step.arm(JOIN, step.now_ms + delay_ms)


def complete(group: ClassicGroup, step: Step, *, disarm: bool = True) -> None:
    """End the join phase: remove absent members; the others begin a generation."""
    if disarm:
        step.disarm(JOIN)
    _remove_absent(group, step)
    leader = group.members.leader
    if group.members and not group.members.elect_leader():
        step.note(notes.NO_MEMBER_REJOINED, group.fields(generation=group.generation))
        step.arm(JOIN, step.now_ms + group.members.rebalance_ms)
        return
    if group.members.leader != leader:
        fields = group.fields(leader=group.members.leader, old_leader=leader)
        elected = group.members.by_id.get(group.leader_or_none)
        step.note(notes.LEADER_ELECTED, fields, members=[] if elected is None else [elected.as_event_member()])
    group.initial = None
    if group.members:
        _begin_generation(group, step)
    else:
        _become_empty(group, step)


def sync_timer_fired(group: ClassicGroup, step: Step) -> None:
    """Remove members whose JoinGroup was answered and that never sent SyncGroup."""
    late = list(group.members.unsynced)
    if not late or group.state not in (GroupState.COMPLETING, GroupState.STABLE):
        return
    removed = [group.members.by_id[member_id].as_event_member() for member_id in late]
    for member_id in late:
        group.remove_member(member_id, step)
    fields = group.fields(generation=group.generation, members=late)
    step.note(notes.NOT_SYNCED, fields, members=removed)
    reason = f"Removing [{', '.join(late)}] on pending sync request expiration"
    prepare(group, step, reason, trigger=Trigger.SYNC_TIMEOUT, members=removed)


def joined(group: ClassicGroup, member: Member) -> Joined:
    """Return the reply to a member's JoinGroup in the current generation: only the leader is sent all members."""
    leads = group.members.leader == member.member_id
    return Joined(
        member_id=member.member_id,
        generation=group.generation,
        protocol_type=group.protocol_type or None,
        protocol=group.protocol,
        leader=group.leader_or_none,
        members=tuple(other.as_joined(group.protocol) for other in group.members) if leads else (),
    )


def _wait_for_first_members(group: ClassicGroup, step: Step) -> None:
    delay_ms = _initial_delay_ms(group)
    group.initial = InitialDelay(delay_ms, max(group.members.rebalance_ms - delay_ms, 0))
    step.arm(JOIN, step.now_ms + delay_ms)


def _initial_delay_ms(group: ClassicGroup) -> int:
    return max(group.config.initial_rebalance_delay_ms, group.initial_delay_min_ms)


def _refuse_syncs(group: ClassicGroup, step: Step) -> None:
    """Answer waiting SyncGroups: the assignment will not come, their members have to join again."""
    if group.state is not GroupState.COMPLETING:
        return
    refuse_waiting_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, step)


def release(group: ClassicGroup, step: Step) -> None:
    """Forget all members: they are those of another group from now on, which they have to join again."""
    for member in group.members:
        token = group.members.take_join(member)
        if token is not None:
            step.refuse(token, Joined(member_id=member.member_id, error=ErrorCode.REBALANCE_IN_PROGRESS))
        if member.sync is not None:
            step.refuse(member.sync, Synced(error=ErrorCode.REBALANCE_IN_PROGRESS))
        if member.armed_ms != UNARMED:
            step.disarm(member.timer)
    if group.state is GroupState.PREPARING:
        step.disarm(JOIN)
    elif group.members.unsynced:
        step.disarm(SYNC)
    group.end_members()


def refuse_waiting_syncs(group: ClassicGroup, error: ErrorCode, step: Step) -> None:
    """Remove the assignments and answer every delayed SyncGroup with `error`; these members' sessions restart."""
    for member in group.members:
        member.assignment = b""
        if member.sync is not None:
            step.refuse(member.sync, Synced(error=error))
            member.sync = None
            group.keep_alive(member, step)


def _remove_absent(group: ClassicGroup, step: Step) -> None:
    absent = [member for member in group.members if member.join is None and member.instance_id is None]
    for member in absent:
        group.remove_member(member.member_id, step)
    if absent:
        fields = group.fields(generation=group.generation, members=[member.member_id for member in absent])
        step.note(notes.NOT_REJOINED, fields, members=[member.as_event_member() for member in absent])


def _begin_generation(group: ClassicGroup, step: Step) -> None:
    """Record the next generation with nothing assigned, then answer its members' JoinGroups (docs/adr/0003)."""
    members = group.members
    for refusal in group.refusals.finish():
        group.write_refusal(refusal, step)
    group.protocol = members.select_protocol()
    group.transition_to(GroupState.COMPLETING, step.wall_ms)
    group.record_group(group.value(generation=group.generation + 1, assigned=False), step)
    waited_ms = step.now_ms - group.phase_ms
    step.note(notes.STABILIZED, _generation_fields(group), duration_ms=waited_ms, members=_last_to_join(group))
    group.phase_ms = step.now_ms
    for member in members:
        token = members.take_join(member)
        if token is not None:
            step.reply(token, joined(group, member))
        member.is_new = False
        members.unsynced[member.member_id] = None
        group.keep_alive(member, step)
    step.arm(SYNC, step.now_ms + members.rebalance_ms)


def _generation_fields(group: ClassicGroup) -> dict[str, object]:
    members = group.members
    return group.fields(
        generation=group.generation, members=len(members), protocol=group.protocol, leader=members.leader
    )


def _last_to_join(group: ClassicGroup) -> list[EventMember]:
    """Return the members that the others waited for, the last one first."""
    late = [member for member in group.members if member.joined_ms > group.phase_ms]
    late.sort(key=lambda member: member.joined_ms, reverse=True)
    return [member.as_event_member(member.joined_ms - group.phase_ms) for member in late[:LAST_TO_JOIN_MAX]]


def _become_empty(group: ClassicGroup, step: Step) -> None:
    group.protocol = None
    group.transition_to(GroupState.EMPTY, step.wall_ms)
    group.record_group(group.value(generation=group.generation + 1, assigned=False), step)
    group.assigned = {}
    waited_ms = step.now_ms - group.phase_ms
    step.note(notes.NOW_EMPTY, group.fields(generation=group.generation), duration_ms=waited_ms)
