"""The notes of a consumer group: the same events of the timeline as a classic group's, with epochs as generations."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rota.coordinator.consumer_group.member import Member, Partitions
from rota.coordinator.consumer_group.progress import NewTarget
from rota.coordinator.consumer_group.state import NO_TARGET, ConsumerGroup, ConsumerGroupState
from rota.coordinator.group import notes
from rota.coordinator.group.effects import Step
from rota.coordinator.group.moves import MEMBERS_COMPARED_MAX, PARTITIONS_COMPARED_MAX, Moves, compare
from rota.protocol.group_timeline import NONE

CONSUMER = "consumer"
TOO_EXPENSIVE = "Regular expression takes too much work and matches no topic"
TOO_MANY_TOPICS = "Regular expression matches more topics than a record of the offsets topic takes, and counts for none"


def joined(group: ConsumerGroup, member: Member, step: Step, *, replaces: Member | None) -> None:
    """A member came in; `replaces` is the static member whose instance it has."""
    if replaces is not None:
        event = notes.STATIC_REPLACED
    else:
        event = notes.MEMBER_ADDED if member.instance_id is None else notes.STATIC_ADDED
    fields = group.fields(member=member.member_id, instance=member.instance_id, members=len(group.members))
    step.note(event, fields, members=(member.as_event_member(),))


def bumped(
    group: ConsumerGroup,
    previous: ConsumerGroupState,
    reason: str,
    trigger: str,
    members: Iterable[Member],
    step: Step,
    client_reason: str | None = None,
) -> None:
    """A rebalance begins. `generation` is the epoch before, as of a classic group."""
    fields = group.fields(reason=reason, client_reason=client_reason) | {
        "generation": group.epoch - 1,
        "members": len(group.members),
    }
    named = tuple(member.as_event_member() for member in members)
    step.note(notes.PREPARING, fields, trigger=trigger, members=named, previous_state=previous.value)


def moves(group: ConsumerGroup, after: Mapping[str, Partitions]) -> Moves:
    """Return what a new target assignment changes; of too many members or partitions only how many there are."""
    before = {**group.departed, **group.targets}
    count = _count(after)
    if max(len(before), len(after)) > MEMBERS_COMPARED_MAX or max(count, _count(before)) > PARTITIONS_COMPARED_MAX:
        return Moves((), count)
    return compare(_named(group, before), _named(group, after))


def _count(targets: Mapping[str, Partitions]) -> int:
    return sum(len(indexes) for target in targets.values() for indexes in target.values())


def _named(group: ConsumerGroup, targets: Mapping[str, Partitions]) -> dict[str, frozenset[tuple[str, int]]]:
    """Return the partitions by the names of their topics; a topic that was deleted is named by its id."""
    names: dict[bytes, str] = {}
    for topic_id in {topic_id for target in targets.values() for topic_id in target}:
        topic = group.topics.by_id(topic_id)
        names[topic_id] = urlsafe_b64encode(topic_id).decode().rstrip("=") if topic is None else topic.name
    return {
        member_id: frozenset((names[topic_id], index) for topic_id, indexes in target.items() for index in indexes)
        for member_id, target in targets.items()
    }


def progressed(group: ConsumerGroup, step: Step) -> None:
    """The end of a step: note a new target, and the begin and the end of the members' way to it."""
    progress = group.progress
    if progress.target is not None:
        assigned(group, progress.target, step)
        progress.target = None
    if group.epoch != group.target_epoch:
        return  # the next target comes soon
    if progress.lagging and not progress.is_noted:
        progress.is_noted = True
        _reconciling(group, step)
    elif not progress.lagging:
        is_noted, duration_ms, members = progress.is_noted, step.now_ms - progress.started_ms, progress.finish()
        if is_noted:
            step.note(
                notes.RECONCILED, group.fields(members=len(group.members)), duration_ms=duration_ms, members=members
            )


def assigned(group: ConsumerGroup, target: NewTarget, step: Step) -> None:
    """The target assignment of the group epoch is there."""
    step.note(
        notes.ASSIGNED,
        group.fields(members=len(group.members), protocol=target.assignor),
        protocol_type=CONSUMER,
        partition_count=target.moves.partition_count,
        duration_ms=target.waited_ms,
        moves=target.moves.by_member,
    )


def _reconciling(group: ConsumerGroup, step: Step) -> None:
    revoking = tuple(member.as_event_member() for member in _have_to_revoke(group))
    fields = group.fields(members=len(group.members), waiting=[member.member_id for member in revoking])
    step.note(notes.RECONCILING, fields, members=revoking, count=len(revoking))


def _have_to_revoke(group: ConsumerGroup) -> Iterator[Member]:
    """Iterate over the members that own partitions which their target does not have."""
    for member_id in group.progress.lagging:
        member, target = group.members[member_id], group.targets.get(member_id, NO_TARGET)
        if member.has_to_revoke or any(
            not indexes.keys() <= target.get(topic_id, frozenset()) for topic_id, indexes in member.assigned.items()
        ):
            yield member


def left(group: ConsumerGroup, member: Member, step: Step, client_reason: str | None = None) -> None:
    """The member left, or was removed by an administrator; only LeaveGroup has a reason."""
    fields = group.fields(member=member.member_id, client_reason=client_reason)
    step.note(notes.LEFT, fields, members=(member.as_event_member(),))


def removed(group: ConsumerGroup, event: str, member: Member, reason: str, step: Step) -> None:
    """A timeout of the member is over; `event` names it."""
    fields = group.fields(member=member.member_id, reason=reason)
    since_ms = group.progress.revoking_since.get(member.member_id)
    waited_ms = NONE if since_ms is None else step.now_ms - since_ms
    step.note(event, fields, members=(replace(member.as_event_member(), wait_ms=waited_ms),))


def empty(group: ConsumerGroup, step: Step) -> None:
    step.note(notes.NOW_EMPTY, group.fields(), duration_ms=0)


def loaded(group: ConsumerGroup, step: Step) -> None:
    step.note(notes.LOADED, group.fields(members=len(group.members)))


def unresolved(group: ConsumerGroup, event: str, expression: str, step: Step) -> None:
    """A line in the log alone: the expression has no topics, and why."""
    step.note(event, group.fields(expression=expression))
