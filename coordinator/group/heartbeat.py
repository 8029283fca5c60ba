"""Heartbeat: the hottest path of the broker.

Laws
    G3  A stale member, instance or generation changes nothing and gets its code.
    A heartbeat moves the member's deadline and touches no timer: the timer looks at the deadline when it goes off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.coordinator.group.events import InstanceId, MemberId
from rota.coordinator.group.states import GroupState
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from rota.coordinator.group.machine import Group

# bound once: looking a member of an enum up costs as much as the rest of this path
_NONE = ErrorCode.NONE
_ILLEGAL_GENERATION = ErrorCode.ILLEGAL_GENERATION
_REBALANCE_IN_PROGRESS = ErrorCode.REBALANCE_IN_PROGRESS
_PREPARING = GroupState.PREPARING


def beat(group: Group, member_id: MemberId, instance_id: InstanceId | None, generation: int, now_ms: int) -> ErrorCode:
    """Keep a member alive: NONE, or REBALANCE_IN_PROGRESS (come and join), or why not."""
    member = group.members.by_id.get(member_id)
    if member is None or (instance_id is not None and member.instance_id != instance_id):
        return _stranger(group, member_id, instance_id)
    if generation != group.generation:
        return _ILLEGAL_GENERATION
    if group.state is _PREPARING:
        member.alive(now_ms)
        return _REBALANCE_IN_PROGRESS
    member.deadline_ms = now_ms + member.session_ms
    return _NONE


def _stranger(group: Group, member_id: MemberId, instance_id: InstanceId | None) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return group.members.check(member_id, instance_id)
