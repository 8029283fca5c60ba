"""How members leave a consumer group: by a request, by the end of their session, or by a late revocation.

Laws
    CG7 A member that leaves or fails is removed with its three records, and the group epoch is bumped.
    CG8 A static member that leaves with epoch -2 keeps its place and its target until its session ends: no bump. It has
        nothing to revoke, also after loading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rota.coordinator.consumer_group import notes, records, steps
from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply
from rota.coordinator.consumer_group.heartbeat import Admitted, known_static, unknown
from rota.coordinator.consumer_group.member import STATIC_LEFT_EPOCH, Member, Owned
from rota.coordinator.consumer_group.refused_requests import refused_heartbeat
from rota.coordinator.consumer_group.state import ConsumerGroup, ConsumerGroupState
from rota.coordinator.consumer_group.steps import (
    SESSION,
    answer,
    bump_epoch,
    cancel_timers,
    record,
    refuse,
    set_rebalance_timer,
)
from rota.coordinator.group import notes as group_notes
from rota.coordinator.group.effects import Step
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger


@dataclass(frozen=True, slots=True)
class Removal:
    """Members that leave at once. The reasons and `trigger` are those of the rebalance."""

    members: tuple[Member, ...]
    reason: str
    trigger: str
    client_reason: str | None = None


Remove = Callable[[Removal, Step], None]  # removes members; the group may become a classic one by it


def leave(group: ConsumerGroup, event: ConsumerHeartbeat, step: Step, remove: Remove) -> None:
    """Handle a heartbeat with epoch -1 or -2."""
    admitted = _member(group, event)
    if isinstance(admitted, HeartbeatReply):
        if admitted.error is ErrorCode.FENCED_INSTANCE_ID:
            refused_heartbeat(group, event, admitted, step)
        refuse(step, event.token, admitted)
        return
    if event.instance_id is not None and event.member_epoch == STATIC_LEFT_EPOCH:
        _leave_temporarily(group, admitted.member, step)
    else:
        notes.left(group, admitted.member, step)
        reason = f"Member {event.member_id} left the consumer group."
        remove(Removal((admitted.member,), reason, Trigger.MEMBER_LEFT), step)
    answer(step, event.token, HeartbeatReply(member_id=event.member_id, member_epoch=event.member_epoch))


def _member(group: ConsumerGroup, event: ConsumerHeartbeat) -> Admitted | HeartbeatReply:
    if event.instance_id is not None:
        return known_static(group, event, checks_epoch=False)
    member = group.members.get(event.member_id)
    return unknown(group, event) if member is None else Admitted(member)


def _leave_temporarily(group: ConsumerGroup, member: Member, step: Step) -> None:
    left = replace(member, epoch=STATIC_LEFT_EPOCH, assigned=_with_epoch_0(member.assigned), pending={})
    record(group, records.current(group.group_id, left), step)
    group.progress.pause(member.member_id)


def _with_epoch_0(owned: Owned) -> Owned:
    return {topic_id: dict.fromkeys(indexes, 0) for topic_id, indexes in owned.items()}


def remove_members(group: ConsumerGroup, removal: Removal, step: Step) -> None:
    """Remove members and bump the epoch."""
    removed = removal.members
    for member in removed:
        group.progress.remove(member.member_id)
        if group.targets.get(member.member_id):
            group.departed[member.member_id] = group.targets[member.member_id]
        for tombstone in records.removed_member(group.group_id, member.member_id):
            record(group, tombstone, step)
        cancel_timers(group, member.member_id, step)
    for expression in dict.fromkeys(member.regex for member in removed if member.regex):
        if expression not in group.expressions:
            record(group, records.removed_regex(group.group_id, expression), step)
    bump_epoch(group, step, removal.reason, removal.trigger, removed, removal.client_reason)
    if not group.members:
        group.assigning_ms = None
        notes.empty(group, step)
    notes.progressed(group, step)


def timer_fired(group: ConsumerGroup, key: str, step: Step, remove: Remove) -> None:
    """A timeout of a member is over: of its session, of its revocation, of its JoinGroup or its SyncGroup."""
    kind, _, member_id = key.partition(":")
    member = group.members.get(member_id)
    match f"{kind}:":
        case steps.SESSION:
            note, trigger = group_notes.FAILED, Trigger.MEMBER_EXPIRED
            late = _session_ended(group, member_id, step)
        case steps.REBALANCE:
            note, trigger = group_notes.NOT_REVOKED, Trigger.REVOCATION_TIMEOUT
            late = _revocation_ended(group, member_id)
        case steps.JOIN:
            note, trigger = group_notes.NOT_REJOINED, Trigger.JOIN_TIMEOUT
            late = _take(group.joining, member_id, "the classic member failed to join within the rebalance timeout")
        case steps.SYNC:
            note, trigger = group_notes.NOT_SYNCED, Trigger.SYNC_TIMEOUT
            late = _take(group.syncing, member_id, "the member failed to sync within timeout")
        case _:
            return
    if member is not None and late is not None:
        reason = f"Member {member_id} fenced from the group because {late}."
        notes.removed(group, note, member, reason, step)
        remove(Removal((member,), reason, trigger), step)


def _revocation_ended(group: ConsumerGroup, member_id: str) -> str | None:
    epoch, member = group.revoking.pop(member_id, None), group.members.get(member_id)
    if member is None or member.epoch != epoch:
        return None
    return f"it failed to transition from epoch {epoch} within {member.rebalance_ms}ms"


def _take(members: set[str], member_id: str, reason: str) -> str | None:
    if member_id not in members:
        return None
    members.remove(member_id)
    return reason


def _session_ended(group: ConsumerGroup, member_id: str, step: Step) -> str | None:
    """Return the reason when the session is over; arm the timer again when it was prolonged."""
    group.armed.pop(member_id, None)
    deadline_ms = group.deadlines.get(member_id)
    if deadline_ms is None:
        return None
    if deadline_ms <= step.now_ms:
        return "the member session expired"
    group.armed[member_id] = deadline_ms
    step.arm(SESSION + member_id, deadline_ms)
    return None


def restart_timers(group: ConsumerGroup, step: Step) -> None:
    """Give every member a full session, and its rebalance timeout where it has to revoke: after loading."""
    group.is_target_checked = False
    for member in group.members.values():
        deadline_ms = step.now_ms + group.settings.session_ms
        group.deadlines[member.member_id] = group.armed[member.member_id] = deadline_ms
        step.arm(SESSION + member.member_id, deadline_ms)
        if member.has_to_revoke:
            set_rebalance_timer(group, member, step)
            group.progress.revoking_since[member.member_id] = step.now_ms
    if group.state is ConsumerGroupState.ASSIGNING:
        group.assigning_ms = step.now_ms
    if group.state is ConsumerGroupState.RECONCILING:
        group.progress.begin(group.members.values(), group.target_epoch, step.now_ms)
