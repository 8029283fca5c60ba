"""Sticky, when all members subscribe to the same topics: each keeps what fits into an equal share. Pure.

Laws
    The numbers of partitions of any two members differ by one at most.
    As many partitions stay where they were as that allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from operator import itemgetter

from rota.client.group.assignors.racks import NOWHERE, Racks
from rota.client.types import TopicPartition

Shares = dict[str, list[TopicPartition]]


def share_equally(
    partitions: Sequence[TopicPartition], owned: Mapping[str, Sequence[TopicPartition]], near: Racks = NOWHERE
) -> Shares:
    """`partitions`: all there are, in order. `owned`: what each member had; a partition has one owner at most."""
    least, richer = divmod(len(partitions), len(owned))
    dealer = _Dealer(owned, least, richer, near)
    taken = {partition for mine in dealer.kept.values() for partition in mine}
    free = [partition for partition in partitions if partition not in taken]
    dealer.deal(dealer.deal_near(free) if near.of_members else free)
    return dealer.kept


class _Dealer:
    """Each member keeps its own up to its share: `least`, and one more for the first `richer` that have so many."""

    def __init__(self, owned: Mapping[str, Sequence[TopicPartition]], least: int, richer: int, near: Racks) -> None:
        self.kept: Shares = {}
        self._least, self._richer, self._near = least, richer, near
        for member_id in sorted(owned):
            mine = sorted((one for one in owned[member_id] if near.fit(member_id, one)), key=itemgetter(1, 0))
            may_be_richer = len(mine) > least and self._richer > 0
            self._richer -= may_be_richer
            self.kept[member_id] = mine[: least + may_be_richer]
        self._below = [member_id for member_id, mine in self.kept.items() if len(mine) < least]
        self._even = deque(member_id for member_id, mine in self.kept.items() if len(mine) == least)

    def deal(self, free: Sequence[TopicPartition]) -> None:
        """In turns to those below their share; when there are none, one more to each of the others."""
        below = deque(self._below)
        for partition in free:
            member_id = below.popleft() if below else self._even.popleft()
            self.kept[member_id].append(partition)
            if len(self.kept[member_id]) < self._least:
                below.append(member_id)
            elif len(self.kept[member_id]) == self._least:
                self._even.append(member_id)

    def deal_near(self, free: Sequence[TopicPartition]) -> list[TopicPartition]:
        """As `deal`, and only to members near by; those that few are near come first. Returns what is left."""
        turns, left = deque(self._below), []
        if not self._richer:
            self._even.clear()
        for partition in sorted(free, key=self._near.rivals):
            member_id = self._next_near(turns, partition) or self._richer_near(partition)
            if member_id is None:
                left.append(partition)
                continue
            self.kept[member_id].append(partition)
            if len(self.kept[member_id]) < self._least:
                turns.append(member_id)
            elif len(self.kept[member_id]) == self._least and self._richer:
                self._even.append(member_id)
        self._below = sorted(turns)
        return left

    def _next_near(self, turns: deque[str], partition: TopicPartition) -> str | None:
        for _ in range(len(turns)):
            if self._near.near(turns[0], partition):
                return turns.popleft()
            turns.rotate(-1)
        return None

    def _richer_near(self, partition: TopicPartition) -> str | None:
        found = next((member_id for member_id in self._even if self._near.near(member_id, partition)), None)
        if found is not None:
            self._even.remove(found)
            self._richer -= 1
            if not self._richer:
                self._even.clear()
        return found
