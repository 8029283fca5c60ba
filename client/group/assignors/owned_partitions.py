"""The owner of each partition, from the claims of all members. Pure.

Laws
    The claim of the newest generation counts. Two claims of one partition in that generation both count for nothing.
    Claims to partitions that do not exist (any more) count for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MemberData:
    """The partitions that a member says it owned, and in which generation (-1: unknown). Kafka's MemberData."""

    partitions: Sequence[TopicPartition] = ()
    generation_id: int = -1


@dataclass(frozen=True, slots=True)
class OwnedPartitions:
    """`owned`: the partitions of each member. `previous`: the owner of a partition in an older generation."""

    owned: Mapping[str, list[TopicPartition]]
    previous: Mapping[TopicPartition, str]


def resolve_owned_partitions(
    member_data: Mapping[str, MemberData], existing: frozenset[TopicPartition]
) -> OwnedPartitions:
    """Return the partitions that each member may keep; `member_data` is by member id."""
    owned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in sorted(member_data)}
    for partition, (_, owner) in _newest(member_data, existing).items():
        if owner is not None:
            owned[owner].append(partition)
    return OwnedPartitions(owned, _previous_owners(member_data))


def _newest(
    member_data: Mapping[str, MemberData], existing: frozenset[TopicPartition]
) -> dict[TopicPartition, tuple[int, str | None]]:
    """Return the newest generation in which a partition is owned, and its owner; None when several members own it."""
    newest: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id in sorted(member_data):
        generation_id = member_data[member_id].generation_id
        for partition in sorted(existing.intersection(member_data[member_id].partitions)):
            found = newest.get(partition)
            if found is None or generation_id > found[0]:
                newest[partition] = (generation_id, member_id)
            elif generation_id == found[0]:
                newest[partition] = (generation_id, None)
    return newest


def _previous_owners(member_data: Mapping[str, MemberData]) -> dict[TopicPartition, str]:
    """Return the owners of an older generation: such a member gets a partition back if its owner has too many."""
    newest = max((data.generation_id for data in member_data.values()), default=-1)
    previous: dict[TopicPartition, str] = {}
    for member_id in sorted(member_data, key=lambda member_id: (-member_data[member_id].generation_id, member_id)):
        if member_data[member_id].generation_id < newest:
            for partition in member_data[member_id].partitions:
                previous.setdefault(partition, member_id)
    return previous
