"""Sticky, when members subscribe to different topics: moving partitions one by one until no move evens out more. Pure.

Laws
    No partition belongs to a member that has two more than another member that could have it.
    A partition moves only to a member that has at least two fewer, so the moves come to an end.
    When two members would swap partitions of one topic, both keep theirs.

Partitions that few members can have come first, as in the general algorithm of Java's sticky assignors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.claims import Possessions
from rota.client.group.assignors.racks import NOWHERE, Racks
from rota.client.types import TopicPartition

Shares = dict[str, list[TopicPartition]]


def share_unequally(
    partitions: Sequence[TopicPartition],
    members: Mapping[str, MemberSubscription],
    had: Possessions,
    near: Racks = NOWHERE,
) -> Shares:
    """`partitions`: all that somebody subscribes to."""
    return _Shares(members, had, near).divide(partitions)


class _Shares:
    """Who has what, while it is being evened out."""

    def __init__(self, members: Mapping[str, MemberSubscription], had: Possessions, near: Racks) -> None:
        self._near = near
        self._topics = {member_id: frozenset(members[member_id].topics) for member_id in sorted(members)}
        self._takers: dict[str, list[str]] = {}
        for member_id, topics in self._topics.items():
            for topic in topics:
                self._takers.setdefault(topic, []).append(member_id)
        self._before = {
            partition: member_id for partition, member_id in had.before.items() if self._fits(partition, member_id)
        }
        self._held: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in self._topics}
        self._owner: dict[TopicPartition, str] = {}
        self._home: dict[TopicPartition, str] = {}  # of a partition that has moved: where it was at first
        self._must_revoke = False
        for member_id, mine in had.owned.items():
            self._keep(member_id, mine)

    def divide(self, partitions: Sequence[TopicPartition]) -> Shares:
        rarest = sorted(partitions, key=lambda one: (len(self._takers[one.topic]), one))
        free = [partition for partition in rarest if partition not in self._owner]
        for partition in free:
            if self._near.of_members:
                self._give_near(partition)
        for partition in free:
            if partition not in self._owner:
                self._give(partition, self._poorest(self._takers[partition.topic]))
        if not self._must_revoke:
            self._even_out(free)
        self._even_out(rarest)
        return {member_id: list(mine) for member_id, mine in self._held.items()}

    def _keep(self, member_id: str, mine: Iterable[TopicPartition]) -> None:
        for partition in mine:
            if self._fits(partition, member_id) and self._near.fit(member_id, partition):
                self._give(partition, member_id)
            else:
                self._must_revoke = True

    def _fits(self, partition: TopicPartition, member_id: str) -> bool:
        return partition.topic in self._topics[member_id]

    def _give_near(self, partition: TopicPartition) -> None:
        near = [member_id for member_id in self._takers[partition.topic] if self._near.fit(member_id, partition)]
        if near:
            self._give(partition, self._poorest(near))

    def _poorest(self, takers: Sequence[str]) -> str:
        """Who has the fewest of these; the first of several."""
        return min(takers, key=lambda member_id: len(self._held[member_id]))

    def _even_out(self, partitions: Sequence[TopicPartition]) -> None:
        """Until nothing moves any more."""
        movable = [partition for partition in partitions if len(self._takers[partition.topic]) > 1]
        while sum(map(self._improve, movable)):
            pass

    def _improve(self, partition: TopicPartition) -> bool:
        """Back to who had it in an older generation, or to who has the fewest, if that has two fewer than the owner."""
        enough = len(self._held[self._owner[partition]]) - 1
        former = self._before.get(partition)
        if former is not None and len(self._held[former]) < enough:
            self._move(partition, former)
            return True
        poorest = self._poorest(self._takers[partition.topic])
        if len(self._held[poorest]) < enough:
            self._move(partition, poorest)
            return True
        return False

    def _move(self, partition: TopicPartition, to: str) -> None:
        """One partition less for its owner, one more for `to`, and nobody swaps."""
        owner = self._owner[partition]
        home = self._home.get(partition, owner)
        swapped = (one for one in self._held[home] if one.topic == partition.topic and self._home.get(one) == to)
        back = next(swapped, None)
        if back is None:
            self._shift(partition, to)
        else:
            self._shift(back, to)
            self._shift(partition, home)

    def _shift(self, partition: TopicPartition, to: str) -> None:
        owner = self._owner[partition]
        if owner == to:
            return
        if self._home.setdefault(partition, owner) == to:
            del self._home[partition]
        del self._held[owner][partition]
        self._give(partition, to)

    def _give(self, partition: TopicPartition, to: str) -> None:
        self._held[to][partition] = None
        self._owner[partition] = to
