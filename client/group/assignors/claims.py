"""The owner of each partition, from the claims of all members. Pure.

Laws
    The claim of the newest generation counts. Two claims of one partition in that generation both count for nothing.
    Claims to partitions that do not exist (any more) count for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rota.client.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Claim:
    """What one member says that it had, and since which generation (-1: it does not know)."""

    partitions: Sequence[TopicPartition] = ()
    generation_id: int = -1


@dataclass(frozen=True, slots=True)
class Possessions:
    """`owned`: partitions of each member. `before`: who had a partition in an older generation than the group's."""

    owned: Mapping[str, list[TopicPartition]]
    before: Mapping[TopicPartition, str]


def settle(claims: Mapping[str, Claim], existing: frozenset[TopicPartition]) -> Possessions:
    """What each member may keep if it can; claims by member id."""
    owned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in sorted(claims)}
    for partition, (_, owner) in _newest(claims, existing).items():
        if owner is not None:
            owned[owner].append(partition)
    return Possessions(owned, _before(claims))


def _newest(
    claims: Mapping[str, Claim], existing: frozenset[TopicPartition]
) -> dict[TopicPartition, tuple[int, str | None]]:
    """The newest generation in which a partition is claimed, and by whom; by None when by several."""
    newest: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id in sorted(claims):
        generation_id = claims[member_id].generation_id
        for partition in sorted(existing.intersection(claims[member_id].partitions)):
            found = newest.get(partition)
            if found is None or generation_id > found[0]:
                newest[partition] = (generation_id, member_id)
            elif generation_id == found[0]:
                newest[partition] = (generation_id, None)
    return newest


def _before(claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """A member that missed generations may get back what it had then, if somebody has too much anyway."""
    newest = max((claim.generation_id for claim in claims.values()), default=-1)
    before: dict[TopicPartition, str] = {}
    for member_id in sorted(claims, key=lambda one: (-claims[one].generation_id, one)):
        if claims[member_id].generation_id < newest:
            for partition in claims[member_id].partitions:
                before.setdefault(partition, member_id)
    return before
