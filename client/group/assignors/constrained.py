"""The constrained sticky assignment, for equal subscriptions: each member keeps partitions up to its quota. Pure.

Laws
    The numbers of partitions of any two members differ by one at most.
    As many partitions keep their owner as that allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from operator import itemgetter

from rota.client.group.assignors.rack_info import NO_RACKS, RackInfo
from rota.client.types import TopicPartition

Assignment = dict[str, list[TopicPartition]]


def constrained_assign(
    partitions: Sequence[TopicPartition], owned: Mapping[str, Sequence[TopicPartition]], racks: RackInfo = NO_RACKS
) -> Assignment:
    """Return the assignment. `partitions`: all, in order. `owned`: by member id; a partition has one owner at most."""
    min_quota, members_with_extra = divmod(len(partitions), len(owned))
    builder = _ConstrainedAssignmentBuilder(owned, min_quota, members_with_extra, racks)
    assigned = {partition for mine in builder.assignment.values() for partition in mine}
    free = [partition for partition in partitions if partition not in assigned]
    builder.assign(builder.assign_in_rack(free) if racks.of_members else free)
    return builder.assignment


class _ConstrainedAssignmentBuilder:
    """Each member keeps its partitions up to its quota: `min_quota`, and one more for `members_with_extra` of them."""

    def __init__(
        self, owned: Mapping[str, Sequence[TopicPartition]], min_quota: int, members_with_extra: int, racks: RackInfo
    ) -> None:
        self.assignment: Assignment = {}
        self._min_quota, self._members_with_extra, self._racks = min_quota, members_with_extra, racks
        for member_id in sorted(owned):
            mine = sorted((p for p in owned[member_id] if racks.has_matching_rack(member_id, p)), key=itemgetter(1, 0))
            has_extra = len(mine) > min_quota and self._members_with_extra > 0
            self._members_with_extra -= has_extra
            self.assignment[member_id] = mine[: min_quota + has_extra]
        self._below_quota = [member_id for member_id, mine in self.assignment.items() if len(mine) < min_quota]
        self._at_min_quota = deque(member_id for member_id, mine in self.assignment.items() if len(mine) == min_quota)

    def assign(self, free: Sequence[TopicPartition]) -> None:
        """Assign to the members below their quota in turn, then one more to each of the others."""
        below_quota = deque(self._below_quota)
        for partition in free:
            member_id = below_quota.popleft() if below_quota else self._at_min_quota.popleft()
            self.assignment[member_id].append(partition)
            if len(self.assignment[member_id]) < self._min_quota:
                below_quota.append(member_id)
            elif len(self.assignment[member_id]) == self._min_quota:
                self._at_min_quota.append(member_id)

    def assign_in_rack(self, free: Sequence[TopicPartition]) -> list[TopicPartition]:
        """As `assign`, to members in the rack, partitions with few of them first. Return the unassigned ones."""
        turns, unassigned = deque(self._below_quota), []
        if not self._members_with_extra:
            self._at_min_quota.clear()
        for partition in sorted(free, key=self._racks.consumers_in_rack):
            member_id = self._next_in_rack(turns, partition) or self._next_in_rack_at_min_quota(partition)
            if member_id is None:
                unassigned.append(partition)
                continue
            self.assignment[member_id].append(partition)
            if len(self.assignment[member_id]) < self._min_quota:
                turns.append(member_id)
            elif len(self.assignment[member_id]) == self._min_quota and self._members_with_extra:
                self._at_min_quota.append(member_id)
        self._below_quota = sorted(turns)
        return unassigned

    def _next_in_rack(self, turns: deque[str], partition: TopicPartition) -> str | None:
        for _ in range(len(turns)):
            if self._racks.is_in_same_rack(turns[0], partition):
                return turns.popleft()
            turns.rotate(-1)
        return None

    def _next_in_rack_at_min_quota(self, partition: TopicPartition) -> str | None:
        found = next(
            (member_id for member_id in self._at_min_quota if self._racks.is_in_same_rack(member_id, partition)), None
        )
        if found is not None:
            self._at_min_quota.remove(found)
            self._members_with_extra -= 1
            if not self._members_with_extra:
                self._at_min_quota.clear()
        return found
