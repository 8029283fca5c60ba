"""original: the algorithm of Kafka's first consumers, kept as a reference (R3). Pure.

    PT: the partitions of a topic, sorted · CG: its subscribers, sorted
    N = ceil(size(PT) / size(CG))
    member i takes the partitions from i*N to (i+1)*N - 1

Ten partitions, three members: 0-3 · 4-7 · 8-9. `range` improved on it: what is left over is spread over the first
members, so that no two differ by more than one. Four partitions, three members: here 0,1 · 2,3 · nothing, with `range`
0,1 · 2 · 3. It is no name that can be configured: give an instance of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription
from rota.client.group.assignors.members import consumers_per_topic
from rota.client.group.assignors.stateless import StatelessAssignor
from rota.client.types import PartitionInfo, TopicPartition


class OriginalAssignor(StatelessAssignor):
    """Equal shares until nothing is left."""

    @property
    def name(self) -> str:
        return "original"

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        shares: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        for topic, subscribers in consumers_per_topic(members).items():
            partitions = [TopicPartition(topic, info.partition) for info in topics.get(topic, ())]
            share = -(-len(partitions) // len(subscribers))
            for i, member_id in enumerate(subscribers):
                shares[member_id] += partitions[i * share : (i + 1) * share]
        return GroupAssignment(shares)
