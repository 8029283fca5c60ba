"""The coordinator's assignors compared with Kafka's on generated groups, in one run of Java.

The number of partitions of each member must be Kafka's, and how many stay where they were. Where one topic is assigned,
the partitions themselves are the same: with several, Kafka takes them in the order of a hash table.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from tests.interop.java_kit import needs_java, run_java

from rota.coordinator.consumer_group.assignors import ASSIGNORS
from rota.coordinator.consumer_group.assignors.spec import GroupSpec, MemberSpec
from rota.coordinator.consumer_group.member import Partitions

pytestmark = needs_java

ASSIGN = __file__.replace("test_assignors_of_the_coordinator.py", "java/AssignGroups.java")
GROUPS = 1_000
SEED = 20261123
Layout = dict[str, frozenset[tuple[bytes, int]]]


def generated(draw: random.Random) -> GroupSpec:
    """A group; half of them with one subscription for all, most with a target of before."""
    counts = {draw.randbytes(16): draw.randint(1, 9) for _ in range(draw.choice((1, 1, 2, 4)))}
    ids = [f"member-{number:02}" for number in range(draw.randint(1, 7))]
    everything = frozenset(counts)
    is_homogeneous = draw.random() < 0.5
    topics = {
        member_id: everything if is_homogeneous else frozenset(topic for topic in counts if draw.random() < 0.6)
        for member_id in ids
    }
    owners = [None] if draw.random() < 0.2 else [None, *ids]
    targets: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in ids}
    for topic, count in counts.items():
        for index in range(count):
            owner = draw.choice(owners)
            if owner is not None:
                targets[owner].setdefault(topic, set()).add(index)
    return GroupSpec(
        members={
            member_id: MemberSpec(
                topic_ids=topics[member_id],
                instance_id=draw.choice((None, None, f"i{draw.randint(0, 99):02}-{member_id}")),
                target={topic: frozenset(indexes) for topic, indexes in targets[member_id].items()},
            )
            for member_id in ids
        },
        is_homogeneous=len(set(topics.values())) == 1,
        partition_counts=counts,
    )


def as_lines(spec: GroupSpec, assignor: str) -> str:
    """For AssignGroups.java."""
    lines = [f"topic|{topic.hex()}|{count}" for topic, count in spec.partition_counts.items()]
    for member_id, member in spec.members.items():
        owned = ",".join(f"{topic.hex()}:{index}" for topic, indexes in member.target.items() for index in indexes)
        names = ",".join(topic.hex() for topic in member.topic_ids)
        lines.append(f"member|{member_id}|{member.instance_id or '-'}|{names}|{owned}")
    return "\n".join([*lines, f"assign|{assignor}|{'homogeneous' if spec.is_homogeneous else 'heterogeneous'}"])


def read(line: str) -> Layout:
    """The answer of AssignGroups.java, without members that have nothing."""
    layout: Layout = {}
    for entry in filter(None, line.split(";")):
        member_id, _, owned = entry.partition("=")
        pairs = (each.split(":") for each in filter(None, owned.split(",")))
        layout[member_id] = frozenset((bytes.fromhex(topic), int(index)) for topic, index in pairs)
    return {member_id: owned for member_id, owned in layout.items() if owned}


def flat(assignment: Mapping[str, Partitions]) -> Layout:
    found = {
        member_id: frozenset((topic, index) for topic, indexes in partitions.items() for index in indexes)
        for member_id, partitions in assignment.items()
    }
    return {member_id: owned for member_id, owned in found.items() if owned}


def sizes(layout: Layout) -> dict[str, int]:
    return {member_id: len(owned) for member_id, owned in layout.items()}


def kept(spec: GroupSpec, layout: Layout) -> int:
    before = flat({member_id: member.target for member_id, member in spec.members.items()})
    return sum(len(owned & before.get(member_id, frozenset())) for member_id, owned in layout.items())


def test_assignments_are_those_of_kafkas_classes() -> None:
    draw = random.Random(SEED)
    cases = [(generated(draw), draw.choice(("uniform", "range"))) for _ in range(GROUPS)]
    answers = run_java(ASSIGN, given="\n".join(as_lines(spec, assignor) for spec, assignor in cases)).splitlines()
    assert len(answers) == GROUPS
    equal = 0
    for (spec, assignor), line in zip(cases, answers, strict=True):
        ours, theirs = flat(ASSIGNORS[assignor](spec)), read(line)
        if assignor == "range" or len(spec.partition_counts) == 1:
            assert ours == theirs, as_lines(spec, assignor)
        assert sum(sizes(ours).values()) == sum(sizes(theirs).values())
        assert sorted(sizes(ours).values()) == sorted(sizes(theirs).values()), as_lines(spec, assignor)
        assert kept(spec, ours) == kept(spec, theirs), as_lines(spec, assignor)
        equal += ours == theirs
    assert equal > GROUPS / 2
