"""Writes the fields of a member, in either protocol: its record, the group epoch, and the target assignment of
that epoch: when it is computed, and by which assignor. Kafka's TargetAssignmentBuilder.

Laws
    CG3 The target belongs to one group epoch; its members get a record each where it changed, then the epoch.
    CG13 A target that the log has in part, because a step was written in part, is computed again.
    CG4 Two targets are at least `assignment.interval.ms` apart (KIP-1263): until then the old one stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rota.coordinator.consumer_group import notes, records, regexes
from rota.coordinator.consumer_group.assignors import ASSIGNORS
from rota.coordinator.consumer_group.assignors.spec import GroupSpec, MemberSpec
from rota.coordinator.consumer_group.member import Member
from rota.coordinator.consumer_group.progress import NewTarget
from rota.coordinator.consumer_group.state import NO_TARGET, NO_VERSION, ConsumerGroup
from rota.coordinator.consumer_group.steps import bump_epoch, cancel_timers, record
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Step
from rota.protocol.dataclass import dataclass
from rota.protocol.group_timeline import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A member before and after its request; `replaces` is the static member whose instance it has now."""

    before: Member
    after: Member
    replaces: Member | None = None
    can_describe: Callable[[str], bool] | None = None  # None: this request lets no expression be resolved


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
    regex_change = regexes.update(group, before, member, change.can_describe, step)
    is_first = not group.epoch  # CG27: of a classic group whose first generation had not begun
    if has_new_names or is_first or regex_change is regexes.Change.RESOLVED:
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


def update_target(group: ConsumerGroup, step: Step) -> None:
    """Compute the target of the group epoch, unless it is there or the last one is too young."""
    if group.target_epoch < group.epoch and _is_due(group, step.wall_ms):
        _compute(group, step)


def is_whole(group: ConsumerGroup) -> bool:
    """Return whether the target has all members, and all partitions of existing topics that members subscribe to."""
    counts = specification(group).partition_counts
    assigned = {
        (topic_id, index) for target in group.targets.values() for topic_id, all_ in target.items() for index in all_
    }
    return group.targets.keys() == group.members.keys() and all(
        (topic_id, index) in assigned for topic_id, count in counts.items() for index in range(count)
    )


def _is_due(group: ConsumerGroup, wall_ms: int) -> bool:
    interval_ms = group.settings.assignment_interval_ms
    return group.target_ms == 0 or interval_ms == 0 or wall_ms >= group.target_ms + interval_ms


def _compute(group: ConsumerGroup, step: Step) -> None:
    preferred = group.preferred_assignor()
    name = preferred if preferred is not None and preferred in ASSIGNORS else group.settings.assignors[0]
    assigned = ASSIGNORS[name](specification(group))
    targets = {member_id: assigned.get(member_id, NO_TARGET) for member_id in group.members}
    waited_ms = 0 if group.assigning_ms is None else step.now_ms - group.assigning_ms
    new = NewTarget(name, notes.moves(group, targets), waited_ms)
    for member_id, partitions in targets.items():
        if member_id not in group.targets or partitions != group.targets[member_id]:
            record(group, records.target(group.group_id, member_id, partitions), step)
    record(group, records.target_epoch(group.group_id, group.epoch, step.wall_ms), step)
    group.assigning_ms = None
    group.departed.clear()
    group.progress.begin(group.members.values(), group.target_epoch, step.now_ms)
    group.progress.target = new


def specification(group: ConsumerGroup) -> GroupSpec:
    """Return what the assignor is given: members in the order of their ids, and the existing topics."""
    topics = group.topics
    ids: dict[str, bytes] = {}
    counts: dict[bytes, int] = {}
    for name in group.subscribed_topics():
        topic = topics.get(name)
        if topic is not None:
            ids[name] = topic.topic_id
            counts[topic.topic_id] = topic.partition_count
    members = {
        member_id: MemberSpec(
            topic_ids=frozenset(ids[name] for name in group.topics_of(member) if name in ids),
            instance_id=member.instance_id,
            target=group.targets.get(member_id, NO_TARGET),
        )
        for member_id, member in sorted(group.members.items())
    }
    return GroupSpec(members=members, is_homogeneous=group.is_homogeneous, partition_counts=counts)
