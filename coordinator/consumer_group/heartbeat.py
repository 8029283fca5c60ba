"""ConsumerGroupHeartbeat: a member joins, says what changed, and gets the next part of its assignment.

Laws
    G3  A refused heartbeat changes nothing.
    CO3 The record of a member fits into the offsets topic.
    CG19 `extend_session` does what a step would: it is for a member that has its target, and has nothing to say.
    CG6 The answer has an assignment when the member joins, says everything, or its assignment has changed.
"""

from __future__ import annotations

from dataclasses import replace

from rota.coordinator.consumer_group import notes, records, regexes
from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply, refusal
from rota.coordinator.consumer_group.heartbeat_checks import Admitted, admit
from rota.coordinator.consumer_group.member import Member, MemberState
from rota.coordinator.consumer_group.refused_requests import refused_heartbeat
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.coordinator.consumer_group.steps import (
    answer,
    cancel_classic_timers,
    extend_deadline,
    refresh_session,
    refuse,
)
from rota.coordinator.consumer_group.subscription import Change, reconciled, replace_static, update_member
from rota.coordinator.consumer_group.target import update_target
from rota.coordinator.group.effects import Step
from rota.protocol.errors import ErrorCode

Client = tuple[str, str]  # client id and host
UNKNOWN_STATE = (
    "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
)


def heartbeat(group: ConsumerGroup, event: ConsumerHeartbeat, step: Step) -> None:
    """Handle a heartbeat of a member that joins or stays."""
    checked = check(group, event)
    if isinstance(checked, Admitted):
        accept(group, event, checked, step)
    else:
        refused_heartbeat(group, event, checked, step)
        refuse(step, event.token, checked)


def extend_session(group: ConsumerGroup, member_id: str, epoch: int, client: Client, now_ms: int) -> bool:
    """Extend the session of a member that says nothing new, without a step; False when a step has to decide (CG19)."""
    member = group.members.get(member_id)
    if (
        member is None
        or not member.is_reconciled_to(epoch)
        or (member.client_id, member.client_host) != client
        or member.classic is not None
        or not (0 < epoch == group.epoch == group.target_epoch)
        or group.topics_version != group.topics.version
        or group.expressions  # they may have to be resolved again
        or group.has_partition_metadata
    ):
        return False
    return extend_deadline(group, member_id, now_ms)


def check(group: ConsumerGroup, event: ConsumerHeartbeat) -> Admitted | HeartbeatReply:
    """Return the member of the heartbeat, or the refusal."""
    admitted = admit(group, event)
    if isinstance(admitted, HeartbeatReply):
        return admitted
    refused = (
        regexes.check(group, admitted.member, event.regex)
        or _of_unknown_state(admitted.member, event)
        or _too_large(group, admitted.member, event)
    )
    return admitted if refused is None else refused


def _of_unknown_state(member: Member, event: ConsumerHeartbeat) -> HeartbeatReply | None:
    """Refuse a member in a state of a newer broker, unless it says that it owns nothing."""
    if member.state is not MemberState.UNKNOWN or event.owned == ():
        return None
    return refusal(ErrorCode.FENCED_MEMBER_EPOCH, UNKNOWN_STATE)


def _too_large(group: ConsumerGroup, member: Member, event: ConsumerHeartbeat) -> HeartbeatReply | None:
    """CO3. Refuse a subscription that the offsets topic does not take, as Kafka does when it is written."""
    if event.topic_names is None and event.regex is None:
        return None
    joining = replace(_updated(member, event), member_id=event.member_id)
    if records.fits(records.member(group.group_id, joining), group.settings.record_bytes_max):
        return None
    return HeartbeatReply(error=ErrorCode.UNKNOWN_SERVER_ERROR)


def accept(group: ConsumerGroup, event: ConsumerHeartbeat, admitted: Admitted, step: Step) -> None:
    """Take a heartbeat in that was checked, and answer it."""
    before = admitted.member
    if admitted.replaces is not None:
        before = replace_static(group, admitted.replaces, event.member_id, step)
    if before.classic is not None:
        cancel_classic_timers(group, before.member_id, step)
    member = _updated(before, event)
    change = Change(before=before, after=member, replaces=admitted.replaces, describes=event.describes)
    has_changed = update_member(group, change, step)
    update_target(group, step)
    after = reconciled(group, member, event.owned, step, has_subscription_changed=has_changed)
    refresh_session(group, after.member_id, step)
    notes.progressed(group, step)
    shows = event.member_epoch == 0 or event.is_full or after.assigned != before.assigned
    reply = HeartbeatReply(
        member_id=after.member_id,
        member_epoch=after.epoch,
        interval_ms=group.settings.heartbeat_interval_ms,
        assignment=after.assigned if shows else None,
    )
    answer(step, event.token, reply)


def _updated(member: Member, event: ConsumerHeartbeat) -> Member:
    return replace(
        member,
        instance_id=member.instance_id if event.instance_id is None else event.instance_id,
        rack_id=member.rack_id if event.rack_id is None else event.rack_id,
        rebalance_ms=member.rebalance_ms if event.rebalance_ms is None else event.rebalance_ms,
        assignor=member.assignor if event.assignor is None else event.assignor,
        topic_names=member.topic_names if event.topic_names is None else event.topic_names,
        regex=member.regex if event.regex is None else event.regex,
        client_id=event.client_id,
        client_host=event.client_host,
        classic=None,
    )
