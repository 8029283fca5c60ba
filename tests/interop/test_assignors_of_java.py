"""Rota's assignors compared with Kafka's on a few hundred generated groups, in one run of Java."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
from tests.interop.java_kit import needs_java, run_java
from tests.property.assignor_world import infos

from rota.client.group.assignors import MemberSubscription, StickyAssignor, for_name
from rota.client.types import TopicPartition

pytestmark = needs_java

ASSIGN = __file__.replace("test_assignors_of_java.py", "java/Assign.java")
GROUPS = 600
SEED = 20261121
STICKY = ("sticky", "cooperative-sticky")
STRATEGIES = ("range", "roundrobin", *STICKY)
Layout = dict[str, frozenset[TopicPartition]]


@dataclass(frozen=True)
class Case:
    """A group, and what its members had before."""

    strategy: str
    counts: dict[str, int]
    members: dict[str, MemberSubscription]
    replicas: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)  # brokers, each its rack; 0 has none

    def racks(self, partition: TopicPartition) -> frozenset[str]:
        return frozenset(f"r{broker}" for broker in self.replicas.get(partition, ()) if broker)

    def answers(self) -> str:
        """For Assign.java."""
        lines = ["nodes|-,r1,r2,r3"]
        for name, count in self.counts.items():
            brokers = [self.replicas.get(TopicPartition(name, number), (0,)) for number in range(count)]
            if count:
                lines.append(f"topic|{name}|{','.join('.'.join(map(str, some)) for some in brokers)}")
        for member_id, entry in self.members.items():
            owned = ",".join(f"{topic}:{number}" for topic, number in entry.owned)
            topics = ",".join(entry.topics)
            instance = entry.group_instance_id or "-"
            lines.append(f"member|{member_id}|{instance}|{entry.rack or '-'}|{entry.generation_id}|{topics}|{owned}")
        return "\n".join([*lines, f"assign|{self.strategy}"])

    def ours(self) -> Layout:
        members = {}
        for member_id, entry in self.members.items():
            if self.strategy == "sticky" and entry.owned:
                assignor = StickyAssignor()
                assignor.on_assignment(entry.owned, None, entry.generation_id)
                entry = replace(entry, owned=(), user_data=assignor.user_data(()))
            members[member_id] = entry
        made = for_name(self.strategy).assign(infos(self.counts, self.racks), members).partitions
        return {member_id: frozenset(mine) for member_id, mine in made.items()}

    @property
    def is_equal(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return len({frozenset(entry.topics) for entry in self.members.values()}) == 1

    @property
    def has_rivals(self) -> bool:
        """Whether more members have one too much than may keep one more."""
        least, richer = divmod(sum(self.counts.values()), len(self.members))
        return sum(len(entry.owned) > least for entry in self.members.values()) > richer > 0

    @property
    def is_a_draw(self) -> bool:
        """Whether who is served first decides how much is near, and with that how much is kept. With different
        subscriptions Java takes which partition goes back by hash."""
        return bool(self.replicas) and (self.has_rivals or not self.is_equal)

    def kept(self, layout: Layout) -> int:
        return sum(len(layout[member_id].intersection(entry.owned)) for member_id, entry in self.members.items())


def make(chance: random.Random, strategy: str) -> Case:
    """A settled group to which something happened: members and topics came and went, someone missed a generation."""
    counts = {f"t{n}": chance.randint(0, 9) for n in range(chance.randint(1, 5))}
    ids = [f"{chance.choice('abc')}-{chance.randrange(10**6):06}" for _ in range(chance.randint(1, 8))]
    equal = chance.random() < 0.5
    members = {}
    for n, member_id in enumerate(dict.fromkeys(ids)):
        topics = tuple(counts) if equal else tuple(chance.sample(sorted(counts), chance.randint(1, len(counts))))
        instance = f"i{n}" if chance.random() < 0.3 else None
        members[member_id] = MemberSubscription(topics, group_instance_id=instance)
    return Case(strategy, counts, members)


def spread(chance: random.Random, case: Case) -> Case:
    """The same in racks."""
    few = chance.choice([(1, 2), (1, 2, 3), (0, 1, 2, 3)])
    names = [None, *(f"r{broker}" for broker in chance.choice([(1, 2), (1, 2, 3), (3,)]))]
    members = {member_id: replace(entry, rack=chance.choice(names)) for member_id, entry in case.members.items()}
    copies = chance.randint(1, len(few))
    partitions = [TopicPartition(name, number) for name, count in case.counts.items() for number in range(count)]
    alike = chance.random() < 0.3  # partitions of the same number on the same brokers
    replicas = {entry: tuple(sorted(chance.sample(few, copies))) for entry in partitions}
    if alike:
        replicas = {
            entry: replicas.get(TopicPartition("t0", entry.partition), mine) for entry, mine in replicas.items()
        }
    return replace(case, members=members, replicas=replicas)


def thrown(chance: random.Random, case: Case) -> Layout:
    """Each partition with any of those who may have it."""
    found: dict[str, set[TopicPartition]] = {member_id: set() for member_id in case.members}
    for topic, count in case.counts.items():
        subscribers = [member_id for member_id, entry in case.members.items() if topic in entry.topics]
        for number in range(count if subscribers else 0):
            found[chance.choice(subscribers)].add(TopicPartition(topic, number))
    return {member_id: frozenset(mine) for member_id, mine in found.items()}


def after(chance: random.Random, case: Case) -> Case:
    """What came of `case`, or might have come of another assignor, and what changed then."""
    layout = thrown(chance, case) if chance.random() < 0.4 else replace(case, strategy="sticky").ours()
    members = {m: replace(entry, owned=tuple(sorted(layout[m])), generation_id=5) for m, entry in case.members.items()}
    counts = dict(case.counts)
    for _ in range(chance.randint(0, 3)):
        match chance.randrange(4):
            case 0 if len(members) > 1:
                members.pop(chance.choice(sorted(members)))
            case 1:
                newcomer = replace(members[chance.choice(sorted(members))], owned=(), generation_id=-1)
                members[f"n-{chance.randrange(10**6):06}"] = replace(newcomer, group_instance_id=None)
            case 2:
                counts[chance.choice(sorted(counts))] += chance.randint(1, 4)
            case 3:
                late = chance.choice(sorted(members))
                members[late] = replace(members[late], generation_id=4)
    return replace(case, counts=counts, members=members)


@pytest.fixture(scope="module")
def answers() -> list[tuple[Case, Layout]]:
    """Groups, and what Java made of each."""
    chance = random.Random(SEED)
    cases = []
    for number in range(GROUPS):
        case = make(chance, STRATEGIES[number % len(STRATEGIES)])
        case = after(chance, case) if chance.random() < 0.7 else case
        cases.append(spread(chance, case) if chance.random() < 0.5 else case)
    answer = run_java(ASSIGN, given="\n".join(case.answers() for case in cases) + "\n")
    return list(zip(cases, [layout(part) for part in answer.split(".\n")], strict=False))


def layout(answer: str) -> Layout:
    found = {}
    for line in answer.splitlines():
        member_id, _, items = line.partition(" ")
        pairs = [item.rpartition(":") for item in items.split(",") if item]
        found[member_id] = frozenset(TopicPartition(topic, int(number)) for topic, _, number in pairs)
    return found


def sizes(layout: Layout) -> list[int]:
    return sorted(len(mine) for mine in layout.values())


def of(answers: list[tuple[Case, Layout]], *strategies: str) -> list[tuple[Case, Layout]]:
    found = [(case, theirs) for case, theirs in answers if case.strategy in strategies]
    assert len(found) == GROUPS // len(STRATEGIES) * len(strategies)
    return found


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_range_and_round_robin_are_java_s(answers: list[tuple[Case, Layout]], strategy: str) -> None:
    for case, theirs in of(answers, strategy):
        assert case.ours() == theirs, case


def test_sticky_is_as_balanced_as_java_s_and_keeps_as_much(answers: list[tuple[Case, Layout]]) -> None:
    for case, theirs in of(answers, "sticky"):
        ours = case.ours()
        assert sizes(ours) == sizes(theirs), case
        if not case.is_a_draw:
            assert case.kept(ours) >= case.kept(theirs), case
            assert case.kept(ours) == case.kept(theirs) or not case.is_equal, case


def test_cooperative_sticky_keeps_and_gives_as_much_as_java_s(answers: list[tuple[Case, Layout]]) -> None:
    for case, theirs in of(answers, "cooperative-sticky"):
        ours = case.ours()
        if not case.is_a_draw:
            assert case.kept(ours) >= case.kept(theirs), case
            assert sum(sizes(ours)) >= sum(sizes(theirs)), case
            assert case.kept(ours) == case.kept(theirs) or not case.is_equal, case
            assert sum(sizes(ours)) == sum(sizes(theirs)) or not case.is_equal, case


def test_the_sticky_ones_are_java_s_where_java_does_not_go_by_hash(answers: list[tuple[Case, Layout]]) -> None:
    """Whose hash comes first may keep one more in Java, when more members have too much than may keep it."""
    certain = [(case, theirs) for case, theirs in of(answers, *STICKY) if case.is_equal and not case.has_rivals]
    assert len(certain) > GROUPS // 8
    for case, theirs in certain:
        assert case.ours() == theirs, case


def test_user_data_are_java_s() -> None:
    had = [TopicPartition("topic", number) for number in (0, 3, 1)]
    answer = ",".join(f"{topic}:{number}" for topic, number in had)
    requests = [f"data|{strategy}|{generation}|{answer}" for strategy in STICKY for generation in (0, 7, 2**31 - 1)]
    ours = []
    for line in requests:
        _, strategy, generation, _ = line.split("|")
        assignor = for_name(strategy)
        assignor.on_assignment(had, None, int(generation))
        ours.append((assignor.user_data(["topic"]) or b"").hex())
    assert run_java(ASSIGN, given="\n".join(requests) + "\n").split() == ours
