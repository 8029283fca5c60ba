"""cooperative-sticky: as sticky, and members continue to read the partitions that they keep (KIP-429). Pure.

A partition that moves is unassigned in the first rebalance: its owner revokes it and joins again, which starts
the second rebalance, in which the partition is free.

Laws
    A partition is assigned to no member while another one owns it.
    What a member owns stands in its subscription; the generation too (version 2, KIP-792), or in its user data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rota.client.group.assignors.base import GroupAssignment, MemberSubscription, RebalanceProtocol
from rota.client.group.assignors.owned_partitions import MemberData
from rota.client.group.assignors.sticky import Assignment, sticky_assign
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.sticky_user_data import decode_cooperative, encode_cooperative


class CooperativeStickyAssignor:
    """Remembers its member's generation."""

    def __init__(self) -> None:
        self._generation_id = -1

    @property
    def name(self) -> str:
        return "cooperative-sticky"

    @property
    def supports(self) -> frozenset[RebalanceProtocol]:
        return frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """The generation, -1 before the first."""
        return encode_cooperative(self._generation_id)

    def assign(
        self, topics: Mapping[str, Sequence[PartitionInfo]], members: Mapping[str, MemberSubscription]
    ) -> GroupAssignment:
        member_data = {member_id: member_data_of(subscription) for member_id, subscription in members.items()}
        return GroupAssignment(adjust_assignment(sticky_assign(topics, members, member_data), member_data))

    def on_assignment(self, partitions: Sequence[TopicPartition], user_data: bytes | None, generation_id: int) -> None:
        self._generation_id = generation_id


def member_data_of(subscription: MemberSubscription) -> MemberData:
    """Return the partitions that a member owns, and their generation."""
    generation_id: int | None = subscription.generation_id
    if subscription.generation_id < 0 and subscription.user_data:
        generation_id = decode_cooperative(subscription.user_data)
    return MemberData(subscription.owned, -1 if generation_id is None else generation_id)


def adjust_assignment(assignment: Assignment, member_data: Mapping[str, MemberData]) -> Assignment:
    """Return the assignment without the partitions that another member has to revoke first."""
    owners: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member_id, data in member_data.items():
        for partition in dict.fromkeys(data.partitions):
            owners.setdefault(partition, []).append((data.generation_id, member_id))

    def is_free(partition: TopicPartition, member_id: str) -> bool:
        known = sorted(owners.get(partition, ()), reverse=True)
        if not known:
            return True
        is_ambiguous = len(known) > 1 and known[0][0] == known[1][0]
        return known[0][1] == member_id and not is_ambiguous

    return {
        member_id: [partition for partition in partitions if is_free(partition, member_id)]
        for member_id, partitions in assignment.items()
    }
