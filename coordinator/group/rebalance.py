"""The rebalance itself: prepare, wait, begin a generation, wait for its syncs (R24, R25).

Laws
    G2  A generation begins in one place, `_begin`, one above the last, and is appended before anybody is told of it.
    A group that was Empty waits `initial_rebalance_delay_ms` and longer while members come, up to the rebalance
    timeout. Any other waits until all have joined, at most the largest rebalance timeout of its members; dynamic
    members that did not come are removed then, static ones stay until their session ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rota.coordinator.group import notes
from rota.coordinator.group.effects import GroupRecord, GroupValue, Joined, Synced
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group
    from rota.coordinator.group.members import Member
    from rota.coordinator.group.turn import Turn

JOIN, SYNC = "join", "sync"  # timer keys


@dataclass(slots=True)
class InitialDelay:
    """The wait of a group that was Empty: the delay that runs now and what may still be added to it."""

    delay_ms: int
    remaining_ms: int
    grew: bool = False  # a member came since the delay began


def prepare_or_complete(group: Group, turn: Turn, reason: str, client_reason: str | None = None) -> None:
    """Something changed: rebalance, or if a rebalance runs already, see whether it is over now."""
    if group.state is GroupState.PREPARING:
        complete_if_all_joined(group, turn)
    else:
        prepare(group, turn, reason, client_reason)


def prepare(group: Group, turn: Turn, reason: str, client_reason: str | None = None) -> None:
    was_empty = group.state is GroupState.EMPTY
    _refuse_syncs(group, turn)
    if group.members.unsynced:
        group.members.unsynced.clear()
        turn.disarm(SYNC)
    group.move(GroupState.PREPARING, turn.wall_ms)
    fields = group.fields(generation=group.generation, reason=reason, client_reason=client_reason)
    turn.note(notes.PREPARING, fields)
    if was_empty:
        _wait_for_first_members(group, turn)
    elif group.members.all_joined:
        complete(group, turn)
    else:
        turn.arm(JOIN, turn.now_ms + group.members.rebalance_ms)


def complete_if_all_joined(group: Group, turn: Turn, *, even_initial: bool = False) -> None:
    """End the join phase when nobody is missing; the initial delay is waited out unless `even_initial`."""
    if group.state is not GroupState.PREPARING or not group.members.all_joined:
        return
    if group.initial is None or even_initial:
        complete(group, turn)


def join_expired(group: Group, turn: Turn) -> None:
    """The join timer went off: prolong an initial delay in which members came, or end the join phase."""
    if group.state is not GroupState.PREPARING:
        return
    initial = group.initial
    if initial is None or not initial.grew or initial.remaining_ms == 0:
        complete(group, turn, disarm=False)
        return
    delay_ms = min(group.config.initial_rebalance_delay_ms, initial.remaining_ms)
    group.initial = InitialDelay(delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
    turn.arm(JOIN, turn.now_ms + delay_ms)


def complete(group: Group, turn: Turn, *, disarm: bool = True) -> None:
    """End the join phase: who is missing goes, the rest begin a generation."""
    if disarm:
        turn.disarm(JOIN)
    _remove_absent(group, turn)
    leader = group.members.leader
    if group.members and not group.members.elect_leader():
        turn.note(notes.NOBODY_REJOINED, group.fields(generation=group.generation))
        turn.arm(JOIN, turn.now_ms + group.members.rebalance_ms)
        return
    if group.members.leader != leader:
        turn.note(notes.LEADER_ELECTED, group.fields(leader=group.members.leader, old_leader=leader))
    group.initial = None
    if group.members:
        _begin(group, turn)
    else:
        _become_empty(group, turn)


def syncs_expired(group: Group, turn: Turn) -> None:
    """The sync timer went off: members that were told their generation and never asked for their assignment go."""
    late = list(group.members.unsynced)
    if not late or group.state not in (GroupState.COMPLETING, GroupState.STABLE):
        return
    for member_id in late:
        group.forget(member_id, turn)
    turn.note(notes.NOT_SYNCED, group.fields(generation=group.generation, members=late))
    names = ", ".join(late)
    prepare(group, turn, f"Removing [{names}] on pending sync request expiration")


def current_value(group: Group, *, generation: int, assigned: bool) -> GroupValue:
    """The group as a record: a generation that just begins (nothing assigned yet) or one with its assignments."""
    return GroupValue(
        protocol_type=group.protocol_type,
        generation=generation,
        protocol=group.protocol,
        leader=group.members.leader,
        state_ms=group.state_ms,
        members=tuple(member.as_value(group.protocol, assigned=assigned) for member in group.members),
    )


def joined(group: Group, member: Member) -> Joined:
    """The current generation as told to one member: the leader alone sees the others."""
    leads = group.members.leader == member.member_id
    return Joined(
        member_id=member.member_id,
        generation=group.generation,
        protocol_type=group.protocol_type or None,
        protocol=group.protocol,
        leader=group.leader_or_none,
        members=tuple(other.as_joined(group.protocol) for other in group.members) if leads else (),
    )


def _wait_for_first_members(group: Group, turn: Turn) -> None:
    delay_ms = group.config.initial_rebalance_delay_ms
    group.initial = InitialDelay(delay_ms, max(group.members.rebalance_ms - delay_ms, 0))
    turn.arm(JOIN, turn.now_ms + delay_ms)


def _refuse_syncs(group: Group, turn: Turn) -> None:
    """A parked SyncGroup waits for an assignment that will not come: its member has to join again."""
    if group.state is not GroupState.COMPLETING:
        return
    for member in group.members:
        member.assignment = b""
        if member.sync is not None:
            turn.refuse(member.sync, Synced(error=ErrorCode.REBALANCE_IN_PROGRESS))
            member.sync = None
            group.keep_alive(member, turn)


def _remove_absent(group: Group, turn: Turn) -> None:
    absent = [member.member_id for member in group.members if member.join is None and member.instance_id is None]
    for member_id in absent:
        group.forget(member_id, turn)
    if absent:
        turn.note(notes.NOT_REJOINED, group.fields(generation=group.generation, members=absent))


def _begin(group: Group, turn: Turn) -> None:
    """Record the next generation with nothing assigned, then tell its members (docs/adr/0003)."""
    members = group.members
    group.protocol = members.select_protocol()
    group.move(GroupState.COMPLETING, turn.wall_ms)
    begun = current_value(group, generation=group.generation + 1, assigned=False)
    group.record(GroupRecord(group.group_id, begun), turn)
    turn.note(notes.STABILIZED, _begun_fields(group))
    for member in members:
        token = members.take_join(member)
        if token is not None:
            turn.reply(token, joined(group, member))
        member.is_new = False
        members.unsynced[member.member_id] = None
        group.keep_alive(member, turn)
    turn.arm(SYNC, turn.now_ms + members.rebalance_ms)


def _begun_fields(group: Group) -> dict[str, object]:
    members = group.members
    return group.fields(
        generation=group.generation, members=len(members), protocol=group.protocol, leader=members.leader
    )


def _become_empty(group: Group, turn: Turn) -> None:
    group.protocol = None
    group.move(GroupState.EMPTY, turn.wall_ms)
    value = current_value(group, generation=group.generation + 1, assigned=False)
    group.record(GroupRecord(group.group_id, value), turn)
    turn.note(notes.NOW_EMPTY, group.fields(generation=group.generation))
