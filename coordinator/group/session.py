"""Timers: sessions that end, ids that nobody came back with, and the two timers of a rebalance.

Laws
    R28  A member is removed when its deadline is past; a timer that goes off earlier looks and goes on waiting.
    A parked JoinGroup or SyncGroup counts as alive; a member that waits for its first generation does so for
    `new_member_join_ms` at most.
    A timer that goes off for what is gone changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.coordinator.group import notes, rebalance
from rota.coordinator.group.events import MemberId
from rota.coordinator.group.members import UNARMED, Member
from rota.coordinator.group.states import GroupState

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group
    from rota.coordinator.group.turn import Turn


def expired(group: Group, key: str, turn: Turn) -> None:
    if key == rebalance.JOIN:
        rebalance.join_expired(group, turn)
    elif key == rebalance.SYNC:
        rebalance.syncs_expired(group, turn)
    else:
        kind, _, member_id = key.partition(":")
        assert kind in ("session", "pending"), key
        look = _session_expired if kind == "session" else _pending_expired
        look(group, MemberId(member_id), turn)


def _session_expired(group: Group, member_id: MemberId, turn: Turn) -> None:
    member = group.members.get(member_id)
    if member is None:
        return
    member.armed_ms = UNARMED
    waits = member.join is not None or member.sync is not None
    if waits and not member.is_new:
        return  # its session begins anew, timer and all, with the answer that it waits for
    if turn.now_ms < member.deadline_ms:
        group.expect(member, member.deadline_ms, turn)
    else:
        _fail(group, member, turn)


def _fail(group: Group, member: Member, turn: Turn) -> None:
    reason = f"removing member {member.member_id} on heartbeat expiration."
    turn.note(notes.FAILED, group.fields(member=member.member_id, generation=group.generation, reason=reason))
    group.dismiss(member, turn)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING):
        rebalance.prepare(group, turn, reason)
    else:
        rebalance.complete_if_all_joined(group, turn, even_initial=True)


def _pending_expired(group: Group, member_id: MemberId, turn: Turn) -> None:
    if member_id not in group.members.pending:
        return
    turn.note(notes.PENDING_EXPIRED, group.fields(member=member_id))
    group.forget(member_id, turn)
    rebalance.complete_if_all_joined(group, turn, even_initial=True)
