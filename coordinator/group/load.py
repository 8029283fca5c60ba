"""A group comes up from its log: what a crash has left, and what it means.

Laws
    A generation that has assignments comes up Stable, each member with a full session ahead.
    A generation that was begun but never assigned is known to its members and to nobody as an assignment: the group
    comes up in PreparingRebalance, so that its members hear REBALANCE_IN_PROGRESS, rejoin with the ids and
    instances they have, and get a higher generation (G2, docs/adr/0003). Its empty parts are never handed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.coordinator.group import notes, rebalance
from rota.coordinator.group.effects import GroupValue
from rota.coordinator.group.members import member_from
from rota.coordinator.group.states import GroupState

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group
    from rota.coordinator.group.turn import Turn


def load(group: Group, turn: Turn) -> None:
    """Rebuild the soft state from the hard; once, after the replay and before the first step."""
    value = group.hard
    if value is None:
        return
    group.protocol_type, group.protocol, group.state_ms = value.protocol_type, value.protocol, value.state_ms
    if value.members:
        _load_members(group, value, turn)
    turn.note(notes.LOADED, group.fields(generation=group.generation, members=len(group.members)))
    if group.state is GroupState.COMPLETING:
        rebalance.prepare(group, turn, f"Freshly-loaded group has begun generation {group.generation} unassigned")
    elif len(group.members) > group.config.group_size_max:
        size = f"size {len(group.members)}) is over capacity {group.config.group_size_max}"
        rebalance.prepare(group, turn, f"Freshly-loaded group {group.group_id} ({size}")


def _load_members(group: Group, value: GroupValue, turn: Turn) -> None:
    is_assigned = any(member.assignment for member in value.members)
    group.state = GroupState.STABLE if is_assigned else GroupState.COMPLETING
    for stored in value.members:
        member = member_from(stored, value.protocol)
        group.members.add(member)
        group.keep_alive(member, turn)
    if value.leader in group.members.by_id:
        group.members.leader = value.leader
