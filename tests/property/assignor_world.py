"""A group of members that have nothing but their assignors: what they say when they join, and what they do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rota.client.group.assignors import Assignor, MemberSubscription, RebalanceProtocol, for_name
from rota.client.types import PartitionInfo, TopicPartition

Owned = dict[str, frozenset[TopicPartition]]
Racks = Callable[[TopicPartition], frozenset[str]]
ROUNDS_MAX = 10


def no_racks(partition: TopicPartition) -> frozenset[str]:
    return frozenset()


def infos(counts: Mapping[str, int], racks: Racks = no_racks) -> dict[str, list[PartitionInfo]]:
    """Topics by name, with so many partitions; `racks(partition)` are those of its replicas."""
    return {
        name: [
            PartitionInfo(name, number, 0, 0, (0,), (0,), racks=racks(TopicPartition(name, number)))
            for number in range(count)
        ]
        for name, count in counts.items()
        if count
    }


def named(partitions: Iterable[TopicPartition]) -> str:
    """As a test writes it: a:0 a:1 b:0."""
    return " ".join(f"{topic}:{number}" for topic, number in sorted(partitions))


@dataclass
class Member:
    """One consumer."""

    assignor: Assignor
    topics: tuple[str, ...]
    instance: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = -1

    def subscription(self) -> MemberSubscription:
        data = self.assignor.user_data(self.topics)
        kept = tuple(item for item in self.owned if item.topic in self.topics) if self._is_cooperative else ()
        return MemberSubscription(self.topics, kept, self.generation_id, self.instance, None, data)

    def take(self, partitions: Sequence[TopicPartition], generation_id: int) -> bool:
        """Whether something has to be given up, so that the member joins again."""
        gives_up = self._is_cooperative and not set(self.owned) <= set(partitions)
        self.assignor.on_assignment(partitions, None, generation_id)
        self.owned, self.generation_id = tuple(partitions), generation_id
        return gives_up

    @property
    def _is_cooperative(self) -> bool:
        return RebalanceProtocol.COOPERATIVE in self.assignor.supports


@dataclass
class Group:
    """Members, and the rounds of rebalancing that they go through."""

    strategy: str
    counts: dict[str, int]
    make: Callable[[str], Assignor] = for_name
    members: dict[str, Member] = field(default_factory=dict)
    generation_id: int = 0
    seen: list[Owned] = field(default_factory=list)  # what each round gave

    def join(self, member_id: str, *topics: str, instance: str | None = None) -> None:
        self.members[member_id] = Member(self.make(self.strategy), topics or tuple(self.counts), instance)

    def subscriptions(self) -> dict[str, MemberSubscription]:
        return {member_id: member.subscription() for member_id, member in self.members.items()}

    def once(self, leader: str | None = None) -> bool:
        """One round. Whether it takes another one."""
        self.generation_id += 1
        chosen = self.members[leader or min(self.members)].assignor
        made = chosen.assign(infos(self.counts), self.subscriptions()).partitions
        self.seen.append({member_id: frozenset(made[member_id]) for member_id in self.members})
        again = [member.take(made[member_id], self.generation_id) for member_id, member in self.members.items()]
        return any(again)

    def rebalance(self, leader: str | None = None) -> int:
        """Until nobody gives anything up any more. How many rounds it took."""
        for rounds in range(1, ROUNDS_MAX + 1):
            if not self.once(leader):
                return rounds
        raise AssertionError(f"not settled after {ROUNDS_MAX} rounds")

    @property
    def owned(self) -> Owned:
        return {member_id: frozenset(member.owned) for member_id, member in self.members.items()}

    @property
    def all_partitions(self) -> set[TopicPartition]:
        """Of topics that somebody subscribes to."""
        wanted = {topic for member in self.members.values() for topic in member.topics}
        return {TopicPartition(topic, n) for topic in wanted for n in range(self.counts.get(topic, 0))}
