"""range: of each topic, a run of neighbouring partitions for each member; the first members get one more. Pure.

Of n partitions and m members each gets n div m, the first n mod m one more: ten partitions, three members: 0-3 · 4-6 ·
7-9 (R4). Topics with the same number of partitions and the same subscribers are divided alike, so that one member has
the same partition numbers of all of them: streams that are joined by key want that. Where racks count, see
range_by_rack.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription
from rota.client.group.assignors.members import consumers_per_topic
from rota.client.group.assignors.range_by_rack import assign_all, topic_assignment_states
from rota.client.group.assignors.stateless import StatelessAssignor
from rota.client.types import PartitionInfo, TopicPartition


class RangeAssignor(StatelessAssignor):
    """Co-partitioned topics stay together."""

    @property
    def name(self) -> str:
        return "range"

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        runs: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        subscribers_of = consumers_per_topic(members)
        states = topic_assignment_states(topics, subscribers_of, members)
        if any(state.racks.is_used for state in states):
            assign_all(states)
            for partition, member_id in sorted(item for state in states for item in state.assigned.items()):
                runs[member_id].append(partition)
            return GroupAssignment(runs)
        for topic, subscribers in subscribers_of.items():
            partitions = [TopicPartition(topic, info.partition) for info in topics.get(topic, ())]
            for member_id, run in zip(subscribers, _runs(partitions, len(subscribers)), strict=True):
                runs[member_id] += run
        return GroupAssignment(runs)


def _runs(partitions: Sequence[TopicPartition], count: int) -> list[Sequence[TopicPartition]]:
    quotient, remainder = divmod(len(partitions), count)
    starts = [i * quotient + min(i, remainder) for i in range(count + 1)]
    return [partitions[starts[i] : starts[i + 1]] for i in range(count)]
