"""Refused requests in the timeline of a consumer group, counted as a classic group counts them.

Laws
    TL4 A refused request has an event at counts 1, 10, 100 and so on, and one with the last count of a group epoch.
    A member that is refused when it joins is known by its client id alone: it has a new member id each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.coordinator.group import notes
from rota.coordinator.group.effects import Step
from rota.coordinator.group.events import Commit, Join, TransactionalCommit
from rota.coordinator.group.refusals import Refusal
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import EventMember

HEARTBEAT: Final = "heartbeat"
_NOTES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.GROUP_MAX_SIZE_REACHED: notes.GROUP_FULL,
    ErrorCode.UNSUPPORTED_ASSIGNOR: notes.PROTOCOLS_REFUSED,
    ErrorCode.INVALID_REGULAR_EXPRESSION: notes.PROTOCOLS_REFUSED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: notes.PROTOCOLS_REFUSED,
    ErrorCode.GROUP_ID_NOT_FOUND: notes.PROTOCOLS_REFUSED,  # a classic group that must not be converted
    ErrorCode.UNKNOWN_SERVER_ERROR: notes.RECORD_TOO_LARGE,
    ErrorCode.UNRELEASED_INSTANCE_ID: notes.INSTANCE_IN_USE,
    ErrorCode.FENCED_INSTANCE_ID: notes.FENCED,
}


def note_of(error: ErrorCode) -> str:
    """Return the event of a heartbeat or JoinGroup that was refused with this code."""
    return _NOTES.get(error, notes.HEARTBEAT_REFUSED)


def sender(event: ConsumerHeartbeat | Join) -> EventMember:
    """Return the member that sent a heartbeat or a JoinGroup."""
    is_joining = isinstance(event, ConsumerHeartbeat) and event.member_epoch == 0
    return EventMember(
        member_id="" if is_joining else event.member_id,
        instance_id=event.instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
    )


def refused_heartbeat(group: ConsumerGroup, event: ConsumerHeartbeat, refusal: HeartbeatReply, step: Step) -> None:
    """Count a heartbeat that was refused."""
    note = note_of(refusal.error)
    refused(group, note, sender(event), HEARTBEAT, refusal.error, step, refusal.message or note)


def refused_commit(group: ConsumerGroup, event: Commit | TransactionalCommit, error: ErrorCode, step: Step) -> None:
    """Count a commit that was refused."""
    member = group.members.get(event.member_id)
    if member is None:
        by = EventMember(member_id=event.member_id, instance_id=event.instance_id)
    else:
        by = member.as_event_member()
    refused(group, notes.COMMIT_REFUSED, by, "offset-commit", error, step)


def refused(
    group: ConsumerGroup,
    event: str,
    member: EventMember,
    operation: str,
    error: ErrorCode,
    step: Step,
    reason: str = "",
) -> None:
    """Count a refused request; note it when its count is to be noted."""
    refusal = group.refusals.add(event, member, operation, error)
    if refusal is not None:
        refusal.reason = reason
        _write(group, refusal, step)


def finish(group: ConsumerGroup, step: Step) -> None:
    """Note the last counts of the group epoch, which ends."""
    for refusal in group.refusals.finish():
        _write(group, refusal, step)


def _write(group: ConsumerGroup, refusal: Refusal, step: Step) -> None:
    member = refusal.member
    holder = None if member.instance_id is None else group.by_instance(member.instance_id)
    fields = group.fields(member=member.member_id, operation=refusal.operation, count=refusal.count)
    members: tuple[EventMember, ...] = (member,)
    if holder is not None and holder.member_id != member.member_id:
        fields |= {"instance": member.instance_id, "holder": holder.member_id}
        members += (holder.as_event_member(),)
    if refusal.reason:
        fields["reason"] = refusal.reason
    fields["members"] = len(group.members)
    step.note(refusal.event, fields, members=members, error_code=int(refusal.error))
