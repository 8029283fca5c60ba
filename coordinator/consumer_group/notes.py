"""The notes of a consumer group: the same events of the timeline as a classic group's, with epochs as generations."""

from __future__ import annotations

from collections.abc import Iterable

from rota.coordinator.consumer_group.member import Member
from rota.coordinator.consumer_group.state import ConsumerGroup, ConsumerGroupState
from rota.coordinator.group import notes
from rota.coordinator.group.effects import Step

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
) -> None:
    """A rebalance begins. `generation` is the epoch before, as of a classic group."""
    fields = group.fields(reason=reason) | {"generation": group.epoch - 1, "members": len(group.members)}
    named = tuple(member.as_event_member() for member in members)
    step.note(notes.PREPARING, fields, trigger=trigger, members=named, previous_state=previous.value)


def assigned(group: ConsumerGroup, assignor: str, step: Step) -> None:
    """The target assignment of the group epoch is there."""
    count = sum(len(indexes) for target in group.targets.values() for indexes in target.values())
    fields = group.fields(members=len(group.members), protocol=assignor)
    step.note(
        notes.ASSIGNED,
        fields,
        protocol_type=CONSUMER,
        partition_count=count,
        duration_ms=step.now_ms - group.assigning_ms,
    )


def left(group: ConsumerGroup, member: Member, step: Step) -> None:
    step.note(notes.LEFT, group.fields(member=member.member_id), members=(member.as_event_member(),))


def failed(group: ConsumerGroup, member: Member, reason: str, step: Step) -> None:
    fields = group.fields(member=member.member_id, reason=reason)
    step.note(notes.FAILED, fields, members=(member.as_event_member(),))


def empty(group: ConsumerGroup, step: Step) -> None:
    step.note(notes.NOW_EMPTY, group.fields(), duration_ms=0)


def loaded(group: ConsumerGroup, step: Step) -> None:
    step.note(notes.LOADED, group.fields(members=len(group.members)))


def unresolved(group: ConsumerGroup, event: str, expression: str, step: Step) -> None:
    """A line in the log alone: the expression has no topics, and why."""
    step.note(event, group.fields(expression=expression))
