"""The members that have a replica of a partition in their rack, where reading is cheaper (KIP-881, KIP-392). Pure.

Laws
    Racks are used only when members name some of them and not every partition has a replica in all of them.
    A member without a rack matches every partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rota.client.group.assignors.base import MemberSubscription
from rota.client.types import PartitionInfo, TopicPartition
from rota.protocol.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RackInfo:
    """The rack of each member by member id, and the racks of each partition's replicas; empty if no member has one."""

    of_members: Mapping[str, str]
    of_partitions: Mapping[TopicPartition, frozenset[str]]

    @property
    def is_used(self) -> bool:
        """Whether rack-aware assignment is used: some partition has no replica in some rack, and members name racks."""
        everywhere = frozenset[str]().union(*self.of_partitions.values())
        some_partition_lacks_a_rack = any(everywhere != racks for racks in self.of_partitions.values())
        return some_partition_lacks_a_rack and not everywhere.isdisjoint(self.of_members.values())

    def has_matching_rack(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether the member has no rack, or a replica of the partition is in its rack."""
        rack = self.of_members.get(member_id)
        return rack is None or rack in self.of_partitions[partition]

    def is_in_same_rack(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack and a replica of the partition is in it."""
        rack = self.of_members.get(member_id)
        return rack is not None and rack in self.of_partitions[partition]

    def consumers_in_rack(self, partition: TopicPartition) -> int:
        """Return how many members have a replica of the partition in their rack."""
        return sum(rack in self.of_partitions[partition] for rack in self.of_members.values())


NO_RACKS = RackInfo({}, {})


def rack_info(infos: Iterable[PartitionInfo], members: Mapping[str, MemberSubscription]) -> RackInfo:
    """Return the racks of these partitions and members; NO_RACKS when rack-aware assignment is not used."""
    racks = all_rack_info(infos, members)
    return racks if racks.is_used else NO_RACKS


def all_rack_info(infos: Iterable[PartitionInfo], members: Mapping[str, MemberSubscription]) -> RackInfo:
    """Return the racks of these partitions and members, also when rack-aware assignment is not used."""
    of_members = {member_id: member.rack for member_id, member in members.items() if member.rack}
    if not of_members:
        return NO_RACKS
    return RackInfo(of_members, {TopicPartition(info.topic, info.partition): info.racks for info in infos})


def with_racks(infos: Iterable[PartitionInfo], of_brokers: Mapping[int, str | None]) -> tuple[PartitionInfo, ...]:
    """Return the partitions with the racks of their replicas, also of those outside the ISR: they will catch up."""

    def replica_racks(info: PartitionInfo) -> frozenset[str]:
        return frozenset(rack for node in info.replicas if (rack := of_brokers.get(node)) is not None)

    return tuple(replace(info, racks=racks) if (racks := replica_racks(info)) else info for info in infos)
