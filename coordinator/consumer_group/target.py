"""The target assignment: when it is computed, and by which assignor. Kafka's TargetAssignmentBuilder.

Laws
    CG3 The target belongs to one group epoch; its members get a record each where it changed, then the epoch.
    CG13 A target that the log has in part, because a step was written in part, is computed again.
    CG4 Two targets are at least `assignment.interval.ms` apart (KIP-1263): until then the old one stands.
"""

from __future__ import annotations

from rota.coordinator.consumer_group import notes, records
from rota.coordinator.consumer_group.assignors import ASSIGNORS
from rota.coordinator.consumer_group.assignors.spec import GroupSpec, MemberSpec
from rota.coordinator.consumer_group.progress import NewTarget
from rota.coordinator.consumer_group.state import NO_TARGET, ConsumerGroup
from rota.coordinator.consumer_group.steps import record
from rota.coordinator.group.effects import Step


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
