"""The order of the members in range and round-robin. Pure.

Laws
    Static members (KIP-345) come first, by their instance id: they keep their places when they restart.
    The others follow by their member id. The order of the mapping has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.client.group.assignors.base import MemberSubscription


def sorted_member_ids(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Member ids."""

    def place(member_id: str) -> tuple[bool, str, str]:
        instance = members[member_id].group_instance_id
        return (instance is None, instance or "", member_id)

    return sorted(members, key=place)


def consumers_per_topic(members: Mapping[str, MemberSubscription]) -> dict[str, list[str]]:
    """Return the subscribers of each topic in order, topics in the order of their names."""
    subscribers: dict[str, list[str]] = {topic: [] for topic in sorted({t for m in members.values() for t in m.topics})}
    for member_id in sorted_member_ids(members):
        for topic in dict.fromkeys(members[member_id].topics):
            subscribers[topic].append(member_id)
    return subscribers
