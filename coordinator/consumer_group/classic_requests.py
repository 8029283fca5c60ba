"""Requests of the classic protocol to a group of the consumer protocol that has members.

Laws
    G3  A classic member cannot join members of the consumer protocol, and what such a member has no part in is unknown
        to it: the request changes nothing.
    An administrator's LeaveGroup removes members of the consumer protocol, too.
"""

from __future__ import annotations

from rota.coordinator.consumer_group import notes
from rota.coordinator.consumer_group.leave import remove_members
from rota.coordinator.consumer_group.member import Member
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.coordinator.group.effects import Joined, Left, Step, Synced
from rota.coordinator.group.events import InstanceId, Join, Leave, Leaver, MemberId, Sync
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger


def join(event: Join, step: Step) -> None:
    """Refuse a classic member: members of both protocols are not served in one group."""
    step.refuse(event.token, Joined(member_id=event.member_id, error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))


def sync(event: Sync, step: Step) -> None:
    step.refuse(event.token, Synced(error=ErrorCode.UNKNOWN_MEMBER_ID))


def leave(group: ConsumerGroup, event: Leave, step: Step) -> None:
    """Remove the members that the request names; one answer for each."""
    removed: dict[str, Member] = {}
    answers = tuple(_leaver(group, leaver, removed) for leaver in event.leavers)
    for member in removed.values():
        notes.left(group, member, step)
    if removed:
        reason = f"explicit `LeaveGroup` request for ({', '.join(removed)}) members."
        remove_members(group, removed.values(), step, reason, Trigger.MEMBER_LEFT)
    step.reply(event.token, Left(ErrorCode.NONE, answers))


def _leaver(
    group: ConsumerGroup, leaver: Leaver, removed: dict[str, Member]
) -> tuple[MemberId, InstanceId | None, ErrorCode]:
    if leaver.instance_id is None:
        member = group.members.get(leaver.member_id)
    else:
        member = group.by_instance(leaver.instance_id)
    if member is None:
        code = ErrorCode.UNKNOWN_MEMBER_ID
    elif leaver.instance_id is not None and leaver.member_id not in ("", member.member_id):
        code = ErrorCode.FENCED_INSTANCE_ID
    else:
        code = ErrorCode.NONE
        removed[member.member_id] = member
    return leaver.member_id, leaver.instance_id, code
