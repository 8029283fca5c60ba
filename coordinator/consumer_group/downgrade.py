"""A group of the consumer protocol becomes a classic one when its last member of that protocol goes.

Law
    CG17 The members that stay have their target assignment as their assignment, and the group epoch is the
         generation.
"""

from __future__ import annotations

from collections.abc import Collection

from rota.coordinator.consumer_group.embedded_protocol import write_assignment
from rota.coordinator.consumer_group.member import Member, Partitions
from rota.coordinator.consumer_group.state import NO_TARGET, ConsumerGroup
from rota.coordinator.group.events import InstanceId, MemberId, Proto
from rota.coordinator.group.members import Member as InClassicGroup
from rota.coordinator.group.members import Members


def is_due(group: ConsumerGroup, leaving: Collection[Member], size_max: int) -> bool:
    """Return whether the group is to become a classic one of at most `size_max` members when these have left."""
    staying = len(group.members) - len(leaving)
    classic = group.classic_count - sum(member.classic is not None for member in leaving)
    return classic == staying and 0 < staying <= size_max and group.settings.migration.downgrades


def is_due_when_replaced(group: ConsumerGroup, holder: Member, size_max: int) -> bool:
    """Return whether the group is to become a classic one when a classic member takes the instance of `holder`."""
    others = len(group.members) - 1
    is_last = holder.classic is None and group.classic_count == others
    return is_last and others < size_max and group.settings.migration.downgrades


def members_of(group: ConsumerGroup, leaving: Collection[Member], *, has_to_rebalance: bool) -> Members:
    """Return the members that stay as those of a classic group; all of them have the classic protocol.

    Until it joins again a member works on what it owns. Before a rebalance that is its assignment (CG20), so that a
    group that is upgraded again meanwhile gives nothing of it to others; else it is its target.
    """
    members = Members()
    left = {member.member_id for member in leaving}
    for member in group.members.values():
        if member.member_id not in left:
            members.add(_member(member))
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


def _member(of: Member) -> InClassicGroup:
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
