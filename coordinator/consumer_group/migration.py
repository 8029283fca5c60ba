"""A group with members changes its type online (KIP-848): a classic group becomes one of the consumer protocol when a
member of that protocol joins, and a classic one again when its last member of that protocol goes.

Laws
    CG16 A group that is upgraded: each member keeps its partitions. They are its current and its target assignment, in
         the epoch that was the generation. A partition that two members were assigned belongs to the first.
    CG17 A group that is downgraded: the members that stay have their target assignment as their assignment, and the
         group epoch is the generation.
    G3   A group that must not or cannot be converted is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection

from rota.coordinator.consumer_group import records
from rota.coordinator.consumer_group.embedded_protocol import read_assignment, write_assignment
from rota.coordinator.consumer_group.member import ClassicMember, Member, Partitions
from rota.coordinator.consumer_group.settings import ConsumerGroupSettings, Environment
from rota.coordinator.consumer_group.state import NO_TARGET, ConsumerGroup
from rota.coordinator.consumer_group.steps import record, refresh_session
from rota.coordinator.consumer_group.topics import metadata_hash
from rota.coordinator.group.effects import Step
from rota.coordinator.group.events import InstanceId, MemberId, Proto
from rota.coordinator.group.members import Member as InClassicGroup
from rota.coordinator.group.members import Members
from rota.coordinator.group.state import ClassicGroup
from rota.protocol.consumer_protocol import decode_subscription
from rota.protocol.wire import DecodeError

CUSTOM_ASSIGNOR = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
    "before re-attempting the upgrade"
)


class CannotUpgrade(Exception):
    """The group stays a classic one; the text has the reason."""


def check_upgrade(classic: ClassicGroup, settings: ConsumerGroupSettings) -> None:
    """Raise CannotUpgrade unless this classic group may become one of the consumer protocol."""
    if not settings.migration.is_upgrade_enabled:
        raise _refusal(classic, "online upgrade is disabled")
    if not classic.is_consumer:
        raise _refusal(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.size_max:
        raise _refusal(classic, "the group size exceeds the consumer group maximum size")


def _refusal(classic: ClassicGroup, reason: str) -> CannotUpgrade:
    return CannotUpgrade(f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.")


def upgrade(classic: ClassicGroup, environment: Environment, step: Step) -> ConsumerGroup:
    """Return the group with its records appended to `step`; `classic` is not changed. Raises CannotUpgrade."""
    group = ConsumerGroup(classic.group_id, environment)
    members, targets = _upgraded_members(classic, group)
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


def _upgraded_members(classic: ClassicGroup, group: ConsumerGroup) -> tuple[list[Member], dict[str, Partitions]]:
    members: list[Member] = []
    targets: dict[str, Partitions] = {}
    taken: set[tuple[bytes, int]] = set()
    try:
        for each in classic.members:
            partitions, has_user_data = read_assignment(each.assignment, group.topics)
            if has_user_data:
                raise _refusal(classic, CUSTOM_ASSIGNOR)
            targets[each.member_id] = _take(partitions, taken)
            members.append(_upgraded_member(classic, each, targets[each.member_id]))
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


def _upgraded_member(classic: ClassicGroup, of: InClassicGroup, partitions: Partitions) -> Member:
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


# ---- downgrade


def is_downgrade_due(group: ConsumerGroup, leaving: Collection[Member], size_max: int) -> bool:
    """Return whether the group is to become a classic one of at most `size_max` members when these have left."""
    staying = len(group.members) - len(leaving)
    classic = group.classic_count - sum(member.classic is not None for member in leaving)
    return classic == staying and 0 < staying <= size_max and group.settings.migration.is_downgrade_enabled


def is_downgrade_due_when_replaced(group: ConsumerGroup, holder: Member, size_max: int) -> bool:
    """Return whether the group is to become a classic one when a classic member takes the instance of `holder`."""
    others = len(group.members) - 1
    is_last = holder.classic is None and group.classic_count == others
    return is_last and others < size_max and group.settings.migration.is_downgrade_enabled


def downgraded_members(group: ConsumerGroup, leaving: Collection[Member], *, has_to_rebalance: bool) -> Members:
    """Return the members that stay as those of a classic group; all of them have the classic protocol.

    Until it joins again a member works on what it owns. Before a rebalance that is its assignment (CG20), so that a
    group that is upgraded again meanwhile gives nothing of it to others; else it is its target.
    """
    members = Members()
    left = {member.member_id for member in leaving}
    for member in group.members.values():
        if member.member_id not in left:
            members.add(_downgraded_member(member))
    protocol = members.select_protocol()
    for each in members:
        target = group.targets.get(each.member_id, NO_TARGET)
        partitions = _in_use(group.members[each.member_id]) if has_to_rebalance else target
        each.assignment = write_assignment(partitions, group.topics, each.metadata(protocol))
    return members


def _in_use(member: Member) -> Partitions:
    """Return what the member owns or has still to revoke."""
    found: dict[bytes, frozenset[int]] = {}
    for owned in (member.assigned, member.pending):
        for topic_id, indexes in owned.items():
            found[topic_id] = found.get(topic_id, frozenset()) | frozenset(indexes)
    return found


def _downgraded_member(of: Member) -> InClassicGroup:
    assert of.classic is not None
    return InClassicGroup(
        member_id=MemberId(of.member_id),
        instance_id=None if of.instance_id is None else InstanceId(of.instance_id),
        client_id=of.client_id,
        client_host=of.client_host,
        rebalance_ms=of.rebalance_ms,
        session_ms=of.classic.session_ms,
        protocols=tuple(Proto(name, metadata) for name, metadata in of.classic.protocols),
    )
