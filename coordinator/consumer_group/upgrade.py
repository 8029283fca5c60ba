"""A classic group with members becomes a group of the consumer protocol (KIP-848's online migration).

Laws
    CG16 Each member keeps its partitions: they are its current and its target assignment, in the epoch that was the
         generation. A partition that two members were assigned belongs to the first.
    G3   A group that must not or cannot be converted is left as it is.
"""

from __future__ import annotations

from rota.coordinator.consumer_group import records
from rota.coordinator.consumer_group.embedded_protocol import read_assignment
from rota.coordinator.consumer_group.member import ClassicMember, Member, Partitions
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, Environment
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.coordinator.consumer_group.steps import record, refresh_session
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Step
from rota.coordinator.group.members import Member as InClassicGroup
from rota.coordinator.group.state import ClassicGroup
from rota.protocol.consumer_protocol import decode_subscription
from rota.protocol.wire import DecodeError

CUSTOM_ASSIGNOR = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
    "before re-attempting the upgrade"
)


class CannotUpgrade(Exception):
    """The group stays a classic one; the text tells why."""


def check(classic: ClassicGroup, settings: ConsumerGroupSettings) -> None:
    """Raise CannotUpgrade unless this classic group may become one of the consumer protocol."""
    if not settings.migration.upgrades:
        raise _refusal(classic, "online upgrade is disabled")
    if not classic.is_consumer:
        raise _refusal(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.size_max:
        raise _refusal(classic, "the group size exceeds the consumer group maximum size")


def _refusal(classic: ClassicGroup, reason: str) -> CannotUpgrade:
    return CannotUpgrade(f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.")


def convert(classic: ClassicGroup, environment: Environment, step: Step) -> ConsumerGroup:
    """Return the group with its records appended to `step`; `classic` is not changed. Raises CannotUpgrade."""
    group = ConsumerGroup(classic.group_id, environment)
    members, targets = _members(classic, group)
    for member in members:
        record(group, records.member(group.group_id, member), step)
    now = metadata_hash(group.subscribed_topics(), group.topics)
    record(group, records.epoch(group.group_id, classic.generation, now), step)
    for member in members:
        record(group, records.target(group.group_id, member.member_id, targets[member.member_id]), step)
    record(group, records.target_epoch(group.group_id, classic.generation, 0), step)
    for member in members:
        record(group, records.current(group.group_id, member), step)
        refresh_session(group, member.member_id, step)
    group.topics_version = group.topics.version
    return group


def _members(classic: ClassicGroup, group: ConsumerGroup) -> tuple[list[Member], dict[str, Partitions]]:
    members: list[Member] = []
    targets: dict[str, Partitions] = {}
    taken: set[tuple[bytes, int]] = set()
    try:
        for each in classic.members:
            partitions, has_user_data = read_assignment(each.assignment, group.topics)
            if has_user_data:
                raise _refusal(classic, CUSTOM_ASSIGNOR)
            targets[each.member_id] = _take(partitions, taken)
            members.append(_member(classic, each, targets[each.member_id]))
    except DecodeError:
        raise _refusal(classic, "the embedded consumer protocol is malformed") from None
    return members, targets


def _take(partitions: Partitions, taken: set[tuple[bytes, int]]) -> Partitions:
    free = {
        topic_id: frozenset(index for index in indexes if (topic_id, index) not in taken)
        for topic_id, indexes in partitions.items()
    }
    taken.update((topic_id, index) for topic_id, indexes in free.items() for index in indexes)
    return {topic_id: indexes for topic_id, indexes in free.items() if indexes}


def _member(classic: ClassicGroup, of: InClassicGroup, partitions: Partitions) -> Member:
    """A group whose first generation has not begun has no assignor yet: that which it would choose counts."""
    protocol = classic.protocol if classic.protocol is not None else classic.members.select_protocol()
    subscription = decode_subscription(of.metadata(protocol))
    epoch = classic.generation
    return Member(
        member_id=of.member_id,
        instance_id=of.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=of.client_id,
        client_host=of.client_host,
        rebalance_ms=of.rebalance_ms,
        topic_names=frozenset(subscription.topics),
        classic=ClassicMember(of.session_ms, tuple((proto.name, proto.metadata) for proto in of.protocols)),
        epoch=epoch,
        previous_epoch=epoch,
        assigned={topic_id: dict.fromkeys(indexes, epoch) for topic_id, indexes in partitions.items()},
    )
