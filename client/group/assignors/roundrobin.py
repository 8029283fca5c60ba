"""roundrobin: the partitions of all topics, one by one, to the members in turn. Pure.

Partitions in order of topic and number go to one member after the other (static members first, see members.py); a
member that does not subscribe to the topic is skipped. Ten partitions, three members: 0,3,6,9 · 1,4,7 · 2,5,8 (R4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription
from rota.client.group.assignors.members import consumers_per_topic, sorted_member_ids
from rota.client.group.assignors.stateless import StatelessAssignor
from rota.client.types import PartitionInfo, TopicPartition


class RoundRobinAssignor(StatelessAssignor):
    """Balanced over all topics when the members subscribe to the same ones."""

    @property
    def name(self) -> str:
        return "roundrobin"

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        assignment: dict[str, list[TopicPartition]] = {member_id: [] for member_id in sorted_member_ids(members)}
        turns = cycle(assignment)
        for topic, subscribers in consumers_per_topic(members).items():
            consumers = set(subscribers)
            for info in topics.get(topic, ()):
                member_id = next(candidate for candidate in turns if candidate in consumers)
                assignment[member_id].append(TopicPartition(topic, info.partition))
        return GroupAssignment(assignment)
