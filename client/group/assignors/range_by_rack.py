"""range, when racks count: near partitions first, within the shares that range gives (KIP-881). Pure.

Laws
    The number of partitions of each topic that a member gets is that of plain range.
    Topics with the same number of partitions and the same subscribers stay together: a partition number goes to one
    member in all of them, near or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from rota.client.group.assignors.base import MemberSubscription
from rota.client.group.assignors.racks import Racks, all_racks
from rota.client.types import PartitionInfo, TopicPartition

Fits = Callable[[str, TopicPartition], bool]


class TopicShares:
    """Who has got how much of one topic."""

    def __init__(self, infos: Sequence[PartitionInfo], subscribers: Sequence[str], near: Racks) -> None:
        self.subscribers = tuple(subscribers)
        self.near = near
        self.taken: dict[TopicPartition, str] = {}
        self.partitions = [TopicPartition(info.topic, info.partition) for info in infos]
        self._least, self._richer = divmod(len(infos), len(subscribers))
        self._counts = Counter(dict.fromkeys(subscribers, 0))

    def room(self, member_id: str) -> int:
        """How many more it may get."""
        return max(0, self._least + (self._richer > 0) - self._counts[member_id])

    def give(self, member_id: str, partitions: Sequence[TopicPartition]) -> None:
        self.taken |= dict.fromkeys(partitions, member_id)
        self._counts[member_id] += len(partitions)
        self._richer -= bool(partitions) and self._counts[member_id] > self._least

    def fill(self, fits: Fits) -> None:
        """To each what fits, as far as there is room."""
        for member_id in self.subscribers:
            free = [one for one in self.partitions if one not in self.taken and fits(member_id, one)]
            self.give(member_id, free[: self.room(member_id)])


def topic_shares(
    topics: Mapping[str, Sequence[PartitionInfo]],
    subscribers: Mapping[str, Sequence[str]],
    members: Mapping[str, MemberSubscription],
) -> list[TopicShares]:
    """One for each topic that is there, still empty."""
    return [
        TopicShares(topics[topic], ids, all_racks(topics[topic], {member_id: members[member_id] for member_id in ids}))
        for topic, ids in subscribers.items()
        if topics.get(topic)
    ]


def divide(shares: Collection[TopicShares]) -> None:
    """All partitions of all topics."""
    together: dict[tuple[tuple[str, ...], int], list[TopicShares]] = {}
    for one in shares:
        together.setdefault((one.subscribers, len(one.partitions)), []).append(one)
    for several in together.values():
        if len(several) > 1:
            _fill_together(several)
        elif several[0].near.count:
            several[0].fill(several[0].near.fit)
    for one in shares:
        one.fill(lambda member_id, partition: True)


def _fill_together(shares: Sequence[TopicShares]) -> None:
    for partitions in zip(*(one.partitions for one in shares), strict=True):
        pairs = list(zip(shares, partitions, strict=True))
        for member_id in shares[0].subscribers:
            if all(one.room(member_id) and one.near.fit(member_id, partition) for one, partition in pairs):
                for one, partition in pairs:
                    one.give(member_id, [partition])
                break
