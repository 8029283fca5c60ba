"""ConsumerGroupHeartbeat: a member joins, sends its changes, and gets the next part of its assignment; or is refused.

Laws
    G3  A stale member, epoch or instance changes nothing and gets its code, and so does any refused heartbeat.
    CO3 The record of a member fits into the offsets topic.
    CG19 `extend_session` does what a step would: it is for a member that has its target, and has nothing to say.
    CG6 The response has an assignment when the member joins, sends all its fields, or has a changed assignment.
"""

from __future__ import annotations

from dataclasses import replace

from rota.coordinator.consumer_group import notes, records, regexes
from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply, refusal
from rota.coordinator.consumer_group.member import STATIC_LEFT_EPOCH, Member, MemberState, is_subset
from rota.coordinator.consumer_group.reconciliation import reconciled
from rota.coordinator.consumer_group.refused_requests import refused_heartbeat
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.coordinator.consumer_group.steps import (
    answer,
    cancel_classic_timers,
    extend_deadline,
    refresh_session,
    refuse,
)
from rota.coordinator.consumer_group.target import Change, replace_static, update_member, update_target
from rota.coordinator.group.effects import Step
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode

Client = tuple[str, str]  # client id and host
UNKNOWN_STATE = (
    "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The member as it is before the heartbeat; `replaces` is the static member whose instance it takes."""

    member: Member
    replaces: Member | None = None


def heartbeat(group: ConsumerGroup, event: ConsumerHeartbeat, step: Step) -> None:
    """Handle a heartbeat of a member that joins or stays."""
    checked = check(group, event)
    if isinstance(checked, Admitted):
        accept(group, event, checked, step)
    else:
        refused_heartbeat(group, event, checked, step)
        refuse(step, event.token, checked)


def extend_session(group: ConsumerGroup, member_id: str, epoch: int, client: Client, now_ms: int) -> bool:
    """Extend the session of a member that sends no change, without a step; False when a step has to decide (CG19)."""
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
    admitted = _admit(group, event)
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
    if records.can_fit_in_batch(records.member(group.group_id, joining), group.settings.record_bytes_max):
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
    change = Change(before=before, after=member, replaces=admitted.replaces, can_describe=event.can_describe)
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


# ---- the member that a heartbeat is about, or its refusal


def _admit(group: ConsumerGroup, event: ConsumerHeartbeat) -> Admitted | HeartbeatReply:
    """Return the member of a heartbeat (a new one when it joins), or the refusal."""
    if is_full(group, event.member_id, event.instance_id):
        text = f"The consumer group has reached its maximum capacity of {group.settings.size_max} members."
        return refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, text)
    if event.instance_id is None:
        return _dynamic(group, event)
    return _joining_static(group, event) if event.member_epoch == 0 else known_static(group, event)


def is_full(group: ConsumerGroup, member_id: str, instance_id: str | None) -> bool:
    """Return whether this member would be one too many."""
    is_known = member_id in group.members or instance_id in group.instances
    return not is_known and len(group.members) >= group.settings.size_max


def _dynamic(group: ConsumerGroup, event: ConsumerHeartbeat) -> Admitted | HeartbeatReply:
    member = group.members.get(event.member_id)
    if member is None:
        return Admitted(Member(member_id=event.member_id)) if event.member_epoch == 0 else unknown(group, event)
    return _check_epoch(member, event) or Admitted(member)


def _joining_static(group: ConsumerGroup, event: ConsumerHeartbeat) -> Admitted | HeartbeatReply:
    assert event.instance_id is not None
    holder = group.by_instance(event.instance_id)
    if holder is None:
        return Admitted(group.members.get(event.member_id) or Member(member_id=event.member_id))
    if holder.classic is None and holder.epoch != STATIC_LEFT_EPOCH:
        text = (
            f"Static member {event.member_id} with instance id {event.instance_id} cannot join the group because the "
            f"instance id is owned by {holder.member_id} member."
        )
        return refusal(ErrorCode.UNRELEASED_INSTANCE_ID, text)
    return Admitted(holder, replaces=holder)


def known_static(
    group: ConsumerGroup, event: ConsumerHeartbeat, *, checks_epoch: bool = True
) -> Admitted | HeartbeatReply:
    """Return the static member of a heartbeat that does not join, or the refusal."""
    assert event.instance_id is not None
    holder = group.by_instance(event.instance_id)
    if holder is None:
        return refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {event.instance_id} is unknown.")
    if holder.member_id != event.member_id:
        text = (
            f"Static member {event.member_id} with instance id {event.instance_id} was fenced by member "
            f"{holder.member_id}."
        )
        return refusal(ErrorCode.FENCED_INSTANCE_ID, text)
    return (_check_epoch(holder, event) if checks_epoch else None) or Admitted(holder)


def unknown(group: ConsumerGroup, event: ConsumerHeartbeat) -> HeartbeatReply:
    return refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {event.member_id} is not a member of group {group.group_id}.")


def _check_epoch(member: Member, event: ConsumerHeartbeat) -> HeartbeatReply | None:
    """Accept the member's epoch, and the one before from a member that has not got more since: its answer was lost."""
    received = event.member_epoch
    if received in (0, member.epoch):
        return None
    if received > member.epoch:
        return _fenced(member, received, "greater")
    is_retry = received == member.previous_epoch and event.owned is not None and is_subset(event.owned, member.assigned)
    return None if is_retry else _fenced(member, received, "smaller")


def _fenced(member: Member, received: int, relation: str) -> HeartbeatReply:
    text = (
        f"The consumer group member has a {relation} member epoch ({received}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    return refusal(ErrorCode.FENCED_MEMBER_EPOCH, text)
