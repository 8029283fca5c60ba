"""range: of each topic a contiguous run of partitions for each member that subscribes to it. Not sticky.

Members are in the order of their instance ids, then those without one in the order of their member ids, so that a
static member gets the same partitions of every topic with the same number of partitions (co-partitioning).
"""

from __future__ import annotations

from collections import Counter

from rota.coordinator.consumer_group.assignors.spec import GroupSpec
from rota.coordinator.consumer_group.member import Partitions


def assign(spec: GroupSpec) -> dict[str, Partitions]:
    """Return the partitions of each member."""
    subscribers = Counter(topic_id for member in spec.members.values() for topic_id in member.topic_ids)
    next_start = dict.fromkeys(subscribers, 0)
    extras = {topic_id: spec.partition_counts[topic_id] % count for topic_id, count in subscribers.items()}
    assignment: dict[str, Partitions] = {}
    for member_id in _ordered(spec):
        assigned: dict[bytes, frozenset[int]] = {}
        for topic_id in spec.members[member_id].topic_ids:
            quota = spec.partition_counts[topic_id] // subscribers[topic_id]
            if extras[topic_id]:
                quota, extras[topic_id] = quota + 1, extras[topic_id] - 1
            start = next_start[topic_id]
            next_start[topic_id] = end = start + quota
            if start < end:
                assigned[topic_id] = frozenset(range(start, end))
        assignment[member_id] = assigned
    return assignment


def _ordered(spec: GroupSpec) -> list[str]:
    def order(member_id: str) -> tuple[bool, str]:
        instance_id = spec.members[member_id].instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(spec.members, key=order)
