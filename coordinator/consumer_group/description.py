"""A group of the consumer protocol as ConsumerGroupDescribe shows it."""

from __future__ import annotations

from rota.coordinator.consumer_group.member import Member, Partitions
from rota.coordinator.consumer_group.state import NO_TARGET, ConsumerGroup, ConsumerGroupState
from rota.protocol.dataclass import dataclass

Named = tuple[tuple[bytes, str, tuple[int, ...]], ...]  # topic id, name, partitions


@dataclass(frozen=True, slots=True)
class DescribedConsumer:
    """A member with what it owns or has still to revoke, and its target; topics that do not exist are left out."""

    member: Member
    assigned: Named
    target: Named


@dataclass(frozen=True, slots=True)
class ConsumerDescription:
    state: ConsumerGroupState
    epoch: int
    target_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]


def describe(group: ConsumerGroup) -> ConsumerDescription:
    """Return the group as clients may see it."""
    return ConsumerDescription(
        group.state,
        group.epoch,
        group.target_epoch,
        group.preferred_assignor() or group.settings.assignors[0],
        tuple(_member(group, member) for member in group.members.values()),
    )


def _member(group: ConsumerGroup, member: Member) -> DescribedConsumer:
    owned = {
        topic_id: frozenset((*member.assigned.get(topic_id, ()), *member.pending.get(topic_id, ())))
        for topic_id in (*member.assigned, *member.pending)
    }
    return DescribedConsumer(
        member, _named(group, owned), _named(group, group.targets.get(member.member_id, NO_TARGET))
    )


def _named(group: ConsumerGroup, partitions: Partitions) -> Named:
    named = []
    for topic_id, indexes in partitions.items():
        topic = group.topics.by_id(topic_id)
        if topic is not None:
            named.append((topic_id, topic.name, tuple(sorted(indexes))))
    return tuple(sorted(named, key=lambda each: each[1]))
