"""roundrobin: all partitions of all topics are dealt like cards. Pure.

Partitions in order of topic and number go to one member after the other (static members first, see members.py); who
does not subscribe to the topic is passed over. Ten partitions, three members: 0,3,6,9 · 1,4,7 · 2,5,8 (R4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription
from rota.client.group.assignors.members import by_topic, in_order
from rota.client.group.assignors.stateless import Stateless
from rota.client.types import PartitionInfo, TopicPartition


class RoundRobinAssignor(Stateless):
    """Balanced over all topics when the members subscribe to the same ones."""

    @property
    def name(self) -> str:
        return "roundrobin"

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        dealt: dict[str, list[TopicPartition]] = {member_id: [] for member_id in in_order(members)}
        turns = cycle(dealt)
        for topic, subscribers in by_topic(members).items():
            wanted = set(subscribers)
            for info in topics.get(topic, ()):
                member_id = next(turn for turn in turns if turn in wanted)
                dealt[member_id].append(TopicPartition(topic, info.partition))
        return GroupAssignment(dealt)
