"""ConsumerGroupHeartbeat: a member joins, says what changed, and gets the next part of its assignment.

Laws
    G3  A refused heartbeat changes nothing.
    CO3 The record of a member fits into the offsets topic.
    CG6 The answer has an assignment when the member joins, says everything, or its assignment has changed.
"""

from __future__ import annotations

from dataclasses import replace

from rota.coordinator.consumer_group import notes, records, regexes
from rota.coordinator.consumer_group.admission import Admitted, admit
from rota.coordinator.consumer_group.events import ConsumerHeartbeat, HeartbeatReply, refusal
from rota.coordinator.consumer_group.member import Member, MemberState
from rota.coordinator.consumer_group.reconciliation import Target, reconcile
from rota.coordinator.consumer_group.state import NO_TARGET, NO_VERSION, ConsumerGroup
from rota.coordinator.consumer_group.steps import (
    answer,
    bump_epoch,
    cancel_timers,
    record,
    refresh_session,
    refuse,
    set_rebalance_timer,
)
from rota.coordinator.consumer_group.target import is_whole, update_target
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Step
from rota.protocol.errors import ErrorCode
from rota.protocol.group_timeline import Trigger

UNKNOWN_STATE = (
    "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
)


def heartbeat(group: ConsumerGroup, event: ConsumerHeartbeat, step: Step) -> None:
    """Handle a heartbeat of a member that joins or stays."""
    admitted = admit(group, event)
    if isinstance(admitted, Admitted):
        invalid = (
            regexes.check(group, admitted.member, event.regex)
            or _of_unknown_state(admitted.member, event)
            or _too_large(group, admitted.member, event)
        )
        if invalid is None:
            _accept(group, event, admitted, step)
            return
        admitted = invalid
    refuse(step, event.token, admitted)


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


def _accept(group: ConsumerGroup, event: ConsumerHeartbeat, admitted: Admitted, step: Step) -> None:
    before = admitted.member
    if admitted.replaces is not None:
        before = _replace_static(group, event, admitted.replaces, step)
    is_new = before.member_id not in group.members
    member = _updated(before, event)
    if member != before:
        record(group, records.member(group.group_id, member), step)
    if is_new or admitted.replaces is not None:
        notes.joined(group, member, step, replaces=admitted.replaces)
    has_new_names = member.topic_names != before.topic_names
    regex_change = regexes.update(group, before, member, event, step)
    if has_new_names or regex_change is regexes.Change.RESOLVED:
        trigger = Trigger.MEMBER_JOINED if is_new else Trigger.METADATA_CHANGED
        bump_epoch(group, step, _reason(member, is_new=is_new), trigger, (member,))
    elif group.topics_version != group.topics.version:
        _look_at_topics(group, step)
    group.topics_version = group.topics.version
    if group.has_partition_metadata:
        record(group, records.removed_partition_metadata(group.group_id), step)
    update_target(group, step)
    has_changed = has_new_names or regex_change is not regexes.Change.NONE
    after = _reconciled(group, member, event, step, has_subscription_changed=has_changed)
    refresh_session(group, after.member_id, step)
    shows = event.member_epoch == 0 or event.is_full or after.assigned != before.assigned
    reply = HeartbeatReply(
        member_id=after.member_id,
        member_epoch=after.epoch,
        interval_ms=group.settings.heartbeat_interval_ms,
        assignment=after.assigned if shows else None,
    )
    answer(step, event.token, reply)


def _replace_static(group: ConsumerGroup, event: ConsumerHeartbeat, holder: Member, step: Step) -> Member:
    """Give the instance, with all that its member had, to the member that joins."""
    member = replace(holder, member_id=event.member_id, epoch=0, previous_epoch=0)
    target = group.targets.get(holder.member_id, NO_TARGET)
    cancel_timers(group, holder.member_id, step)
    for tombstone in records.removed_member(group.group_id, holder.member_id):
        record(group, tombstone, step)
    record(group, records.member(group.group_id, member), step)
    record(group, records.target(group.group_id, member.member_id, target), step)
    record(group, records.current(group.group_id, member), step)
    return member


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


def _reason(member: Member, *, is_new: bool) -> str:
    what = "joins the consumer group" if is_new else "updated its subscription"
    return f"Member {member.member_id} {what}."


def _look_at_topics(group: ConsumerGroup, step: Step) -> None:
    """Bump the epoch when topics that members subscribe to have changed since they were looked at.

    CG13. Also, once after loading, when the target has not all members and partitions.
    """
    is_first = group.topics_version == NO_VERSION
    if metadata_hash(group.subscribed_topics(), group.topics) != group.metadata_hash:
        reason = "Subscribed topics changed" + (" before the group was loaded." if is_first else ".")
        bump_epoch(group, step, reason, Trigger.TOPICS_CHANGED)
    elif not group.is_target_checked and group.target_epoch == group.epoch and not is_whole(group):
        bump_epoch(group, step, "The log of the group ended within a step.", Trigger.LOADED_UNASSIGNED)
    group.is_target_checked = True


def _reconciled(
    group: ConsumerGroup, member: Member, event: ConsumerHeartbeat, step: Step, *, has_subscription_changed: bool
) -> Member:
    """Move the member towards its target assignment."""
    if not has_subscription_changed and member.is_reconciled_to(group.target_epoch):
        return member
    topics = (group.topics.get(name) for name in group.topics_of(member))
    target = Target(
        epoch=group.target_epoch,
        partitions=group.targets.get(member.member_id, NO_TARGET),
        topic_ids=frozenset(topic.topic_id for topic in topics if topic is not None),
        is_owned=lambda topic_id, index: (topic_id, index) in group.owners,
        has_subscription_changed=has_subscription_changed,
    )
    after = reconcile(member, target, event.owned)
    if after != member:
        record(group, records.current(group.group_id, after), step)
        set_rebalance_timer(group, after, step)
    return after
