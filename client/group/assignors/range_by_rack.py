"""range with rack information: partitions in a member's rack first, as many as range gives it (KIP-881). Pure.

Laws
    The number of partitions of each topic that a member gets is that of plain range.
    Topics with the same number of partitions and the same subscribers are co-partitioned: a partition number goes to
    one member in all of them, whatever its rack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.rack_info import RackInfo, all_rack_info
from rota.client.types import PartitionInfo, TopicPartition

RackPredicate = Callable[[str, TopicPartition], bool]


class TopicAssignmentState:
    """The assignment of one topic while it is computed."""

    def __init__(self, infos: Sequence[PartitionInfo], subscribers: Sequence[str], racks: RackInfo) -> None:
        self.subscribers = tuple(subscribers)
        self.racks = racks
        self.assigned: dict[TopicPartition, str] = {}
        self.partitions = [TopicPartition(info.topic, info.partition) for info in infos]
        self._partitions_per_consumer, self._consumers_with_extra = divmod(len(infos), len(subscribers))
        self._counts = Counter(dict.fromkeys(subscribers, 0))

    def max_assignable(self, member_id: str) -> int:
        """Return how many more partitions the member may get."""
        return max(0, self._partitions_per_consumer + (self._consumers_with_extra > 0) - self._counts[member_id])

    def assign(self, member_id: str, partitions: Sequence[TopicPartition]) -> None:
        self.assigned |= dict.fromkeys(partitions, member_id)
        self._counts[member_id] += len(partitions)
        self._consumers_with_extra -= bool(partitions) and self._counts[member_id] > self._partitions_per_consumer

    def assign_matching(self, matches: RackPredicate) -> None:
        """Assign to each member the unassigned partitions that match, up to its maximum."""
        for member_id in self.subscribers:
            free = [p for p in self.partitions if p not in self.assigned and matches(member_id, p)]
            self.assign(member_id, free[: self.max_assignable(member_id)])


def topic_assignment_states(
    topics: Mapping[str, Sequence[PartitionInfo]],
    subscribers: Mapping[str, Sequence[str]],
    members: Mapping[str, MemberSubscription],
) -> list[TopicAssignmentState]:
    """Return an empty state for each topic that exists."""
    return [
        TopicAssignmentState(
            topics[topic], ids, all_rack_info(topics[topic], {member_id: members[member_id] for member_id in ids})
        )
        for topic, ids in subscribers.items()
        if topics.get(topic)
    ]


def assign_all(states: Collection[TopicAssignmentState]) -> None:
    """Assign all partitions of all topics."""
    co_partitioned: dict[tuple[tuple[str, ...], int], list[TopicAssignmentState]] = {}
    for state in states:
        co_partitioned.setdefault((state.subscribers, len(state.partitions)), []).append(state)
    for group in co_partitioned.values():
        if len(group) > 1:
            _assign_co_partitioned(group)
        elif group[0].racks.is_used:
            group[0].assign_matching(group[0].racks.has_matching_rack)
    for state in states:
        state.assign_matching(lambda member_id, partition: True)


def _assign_co_partitioned(states: Sequence[TopicAssignmentState]) -> None:
    for partitions in zip(*(state.partitions for state in states), strict=True):
        pairs = list(zip(states, partitions, strict=True))
        for member_id in states[0].subscribers:
            if all(
                state.max_assignable(member_id) and state.racks.has_matching_rack(member_id, partition)
                for state, partition in pairs
            ):
                for state, partition in pairs:
                    state.assign(member_id, [partition])
                break
