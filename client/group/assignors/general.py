"""The general sticky assignment, for different subscriptions: move partitions until it is balanced. Pure.

Laws
    No partition belongs to a member that has two more than another member that could have it.
    A partition moves only to a member that has at least two fewer, so the moves come to an end.
    When two members would swap partitions of one topic, both keep theirs.

Partitions with few potential consumers come first, as in the general algorithm of Java's sticky assignors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.owned_partitions import OwnedPartitions
from rota.client.group.assignors.rack_info import NO_RACKS, RackInfo
from rota.client.types import TopicPartition

Assignment = dict[str, list[TopicPartition]]


def general_assign(
    partitions: Sequence[TopicPartition],
    members: Mapping[str, MemberSubscription],
    owned: OwnedPartitions,
    racks: RackInfo = NO_RACKS,
) -> Assignment:
    """Return the assignment of `partitions`, which are those of all subscribed topics."""
    return _GeneralAssignmentBuilder(members, owned, racks).build(partitions)


class _GeneralAssignmentBuilder:
    """The assignment while it is computed, as Kafka's GeneralAssignmentBuilder."""

    def __init__(self, members: Mapping[str, MemberSubscription], owned: OwnedPartitions, racks: RackInfo) -> None:
        self._racks = racks
        self._topics = {member_id: frozenset(members[member_id].topics) for member_id in sorted(members)}
        self._potential_consumers: dict[str, list[str]] = {}
        for member_id, topics in self._topics.items():
            for topic in topics:
                self._potential_consumers.setdefault(topic, []).append(member_id)
        self._previous = {
            partition: member_id
            for partition, member_id in owned.previous.items()
            if self._is_subscribed(partition, member_id)
        }
        self._assignment: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in self._topics}
        self._owner: dict[TopicPartition, str] = {}
        self._original_owner: dict[TopicPartition, str] = {}  # by partition that has moved
        self._revocation_required = False
        for member_id, mine in owned.owned.items():
            self._keep_owned(member_id, mine)

    def build(self, partitions: Sequence[TopicPartition]) -> Assignment:
        sorted_partitions = sorted(partitions, key=lambda p: (len(self._potential_consumers[p.topic]), p))
        free = [partition for partition in sorted_partitions if partition not in self._owner]
        for partition in free:
            if self._racks.of_members:
                self._assign_in_rack(partition)
        for partition in free:
            if partition not in self._owner:
                self._assign(partition, self._least_loaded(self._potential_consumers[partition.topic]))
        if not self._revocation_required:
            self._balance(free)
        self._balance(sorted_partitions)
        return {member_id: list(mine) for member_id, mine in self._assignment.items()}

    def _keep_owned(self, member_id: str, mine: Iterable[TopicPartition]) -> None:
        for partition in mine:
            if self._is_subscribed(partition, member_id) and self._racks.has_matching_rack(member_id, partition):
                self._assign(partition, member_id)
            else:
                self._revocation_required = True

    def _is_subscribed(self, partition: TopicPartition, member_id: str) -> bool:
        return partition.topic in self._topics[member_id]

    def _assign_in_rack(self, partition: TopicPartition) -> None:
        in_rack = [
            member_id
            for member_id in self._potential_consumers[partition.topic]
            if self._racks.has_matching_rack(member_id, partition)
        ]
        if in_rack:
            self._assign(partition, self._least_loaded(in_rack))

    def _least_loaded(self, consumers: Sequence[str]) -> str:
        """Return the consumer with the fewest partitions; the first of several."""
        return min(consumers, key=lambda member_id: len(self._assignment[member_id]))

    def _balance(self, partitions: Sequence[TopicPartition]) -> None:
        """Reassign partitions until none moves."""
        movable = [partition for partition in partitions if len(self._potential_consumers[partition.topic]) > 1]
        while sum(map(self._reassign, movable)):
            pass

    def _reassign(self, partition: TopicPartition) -> bool:
        """Move it to its previous owner or the least loaded consumer, if that has two fewer. Return if it moved."""
        limit = len(self._assignment[self._owner[partition]]) - 1
        previous_owner = self._previous.get(partition)
        if previous_owner is not None and len(self._assignment[previous_owner]) < limit:
            self._move(partition, previous_owner)
            return True
        least_loaded = self._least_loaded(self._potential_consumers[partition.topic])
        if len(self._assignment[least_loaded]) < limit:
            self._move(partition, least_loaded)
            return True
        return False

    def _move(self, partition: TopicPartition, to: str) -> None:
        """Move one partition from its owner to `to`; two members never swap partitions of one topic."""
        owner = self._owner[partition]
        original_owner = self._original_owner.get(partition, owner)
        swapped = (
            p
            for p in self._assignment[original_owner]
            if p.topic == partition.topic and self._original_owner.get(p) == to
        )
        back = next(swapped, None)
        if back is None:
            self._change_owner(partition, to)
        else:
            self._change_owner(back, to)
            self._change_owner(partition, original_owner)

    def _change_owner(self, partition: TopicPartition, to: str) -> None:
        owner = self._owner[partition]
        if owner == to:
            return
        if self._original_owner.setdefault(partition, owner) == to:
            del self._original_owner[partition]
        del self._assignment[owner][partition]
        self._assign(partition, to)

    def _assign(self, partition: TopicPartition, to: str) -> None:
        self._assignment[to][partition] = None
        self._owner[partition] = to
