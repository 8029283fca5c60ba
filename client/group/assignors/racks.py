"""The members that have a replica of a partition in their rack, where reading is cheaper (KIP-881, KIP-392). Pure.

Laws
    Racks count only where they tell partitions apart: members name some of them, and not every partition has them all.
    A member without a rack matches every partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rota.client.group.assignors.base import MemberSubscription
from rota.client.types import PartitionInfo, TopicPartition


@dataclass(frozen=True, slots=True)
class Racks:
    """Racks by member id, and of all replicas of each partition; nothing in either where nobody names one."""

    of_members: Mapping[str, str]
    of_partitions: Mapping[TopicPartition, frozenset[str]]

    @property
    def count(self) -> bool:
        """Whether they tell partitions apart."""
        everywhere = frozenset[str]().union(*self.of_partitions.values())
        some_is_lacking = any(everywhere != racks for racks in self.of_partitions.values())
        return some_is_lacking and not everywhere.isdisjoint(self.of_members.values())

    def fit(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether the member is no worse off with this partition than with another one."""
        rack = self.of_members.get(member_id)
        return rack is None or rack in self.of_partitions[partition]

    def near(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether they share a rack."""
        rack = self.of_members.get(member_id)
        return rack is not None and rack in self.of_partitions[partition]

    def rivals(self, partition: TopicPartition) -> int:
        """How many members are near it."""
        return sum(rack in self.of_partitions[partition] for rack in self.of_members.values())


NOWHERE = Racks({}, {})


def racks(infos: Iterable[PartitionInfo], members: Mapping[str, MemberSubscription]) -> Racks:
    """Those of these partitions and members; NOWHERE when they do not count."""
    told = all_racks(infos, members)
    return told if told.count else NOWHERE


def all_racks(infos: Iterable[PartitionInfo], members: Mapping[str, MemberSubscription]) -> Racks:
    """Those of these partitions and members, whether they count or not."""
    of_members = {member_id: member.rack for member_id, member in members.items() if member.rack}
    if not of_members:
        return NOWHERE
    return Racks(of_members, {TopicPartition(info.topic, info.partition): info.racks for info in infos})


def with_racks(infos: Iterable[PartitionInfo], of_brokers: Mapping[int, str | None]) -> tuple[PartitionInfo, ...]:
    """The same, and where the replicas are. All replicas count, also those that lag: they will catch up."""

    def near(info: PartitionInfo) -> frozenset[str]:
        return frozenset(rack for node in info.replicas if (rack := of_brokers.get(node)) is not None)

    return tuple(replace(info, racks=where) if (where := near(info)) else info for info in infos)
