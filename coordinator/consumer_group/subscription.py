"""What a member says of itself taken in, in either protocol: its record, the group's epoch, its next partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rota.coordinator.consumer_group import notes, records, regexes
from rota.coordinator.consumer_group.member import Member
from rota.coordinator.consumer_group.reconciliation import Reported, Target, reconcile
from rota.coordinator.consumer_group.state import NO_TARGET, NO_VERSION, ConsumerGroup
from rota.coordinator.consumer_group.steps import bump_epoch, cancel_timers, record, set_rebalance_timer
from rota.coordinator.consumer_group.target import is_whole
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Step
from rota.protocol.group_timeline import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A member before and after its request; `replaces` is the static member whose instance it has now."""

    before: Member
    after: Member
    replaces: Member | None = None
    describes: Callable[[str], bool] | None = None  # None: this request lets no expression be resolved


def replace_static(group: ConsumerGroup, holder: Member, member_id: str, step: Step) -> Member:
    """Give the instance of `holder`, with all that it had, to the member that joins."""
    member = replace(holder, member_id=member_id, epoch=0, previous_epoch=0)
    target = group.targets.get(holder.member_id, NO_TARGET)
    cancel_timers(group, holder.member_id, step)
    group.progress.remove(holder.member_id)
    group.progress.await_member(member_id, step.now_ms)
    for tombstone in records.removed_member(group.group_id, holder.member_id):
        record(group, tombstone, step)
    record(group, records.member(group.group_id, member), step)
    record(group, records.target(group.group_id, member.member_id, target), step)
    record(group, records.current(group.group_id, member), step)
    return member


def update_member(group: ConsumerGroup, change: Change, step: Step) -> bool:
    """Record the member, and bump the epoch when it or the topics changed; return whether its subscription changed."""
    before, member = change.before, change.after
    is_new = before.member_id not in group.members
    if member != before:
        record(group, records.member(group.group_id, member), step)
    if is_new or change.replaces is not None:
        notes.joined(group, member, step, replaces=change.replaces)
    has_new_names = member.topic_names != before.topic_names
    regex_change = regexes.update(group, before, member, change.describes, step)
    if has_new_names or regex_change is regexes.Change.RESOLVED:
        trigger = Trigger.MEMBER_JOINED if is_new else Trigger.METADATA_CHANGED
        bump_epoch(group, step, _reason(member, is_new=is_new), trigger, (member,))
    elif group.topics_version != group.topics.version:
        _look_at_topics(group, step)
    group.topics_version = group.topics.version
    if group.has_partition_metadata:
        record(group, records.removed_partition_metadata(group.group_id), step)
    return has_new_names or regex_change is not regexes.Change.NONE


def _reason(member: Member, *, is_new: bool) -> str:
    change = "joins the consumer group" if is_new else "updated its subscription"
    return f"Member {member.member_id} {change}."


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


def reconciled(
    group: ConsumerGroup, member: Member, owned: Reported, step: Step, *, has_subscription_changed: bool
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
    after = reconcile(member, target, owned)
    if after != member:
        record(group, records.current(group.group_id, after), step)
        group.progress.advance(member, after, group.target_epoch, step.now_ms)
        set_rebalance_timer(group, after, step)
    return after
