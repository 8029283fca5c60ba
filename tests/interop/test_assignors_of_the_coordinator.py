"""The coordinator's assignors compared with Kafka's on generated groups, in one run of Java.

Each member gets the same partitions. Kafka takes topics in the order of a hash table of their ids where Rota takes them
in the order of the ids: the ids are made so that both are the same. Racks of members and replicas change nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from tests.interop.java_kit import needs_java, run_java

from rota.coordinator.consumer_group.assignors import ASSIGNORS
from rota.coordinator.consumer_group.assignors.spec import GroupSpec, MemberSpec, uuid_order
from rota.coordinator.consumer_group.member import Partitions

pytestmark = needs_java

ASSIGN = __file__.replace("test_assignors_of_the_coordinator.py", "java/AssignGroups.java")
GROUPS = 1_000
SEED = 20261123
BUCKETS = 16  # of Java's table of so few ids
RACKS = ("a", "b", "c")
Layout = dict[str, frozenset[tuple[bytes, int]]]


def topic_ids(draw: random.Random, count: int) -> list[bytes]:
    """Ids in their order, each in a later bucket of Java's hash table than the one before."""
    ids = sorted({draw.randbytes(16) for _ in range(count)}, key=uuid_order)
    buckets = sorted(draw.sample(range(BUCKETS), count))
    return [in_bucket(topic_id, bucket) for topic_id, bucket in zip(ids, buckets, strict=True)]


def in_bucket(topic_id: bytes, bucket: int) -> bytes:
    """The id with other last bits, so that HashSet keeps it in this bucket."""
    return topic_id[:-1] + bytes([topic_id[-1] ^ bucket_of(topic_id) ^ bucket])


def bucket_of(topic_id: bytes) -> int:
    """Uuid.hashCode, spread as by HashMap."""
    word = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    code = (word >> 32) ^ (word & 0xFFFFFFFF)
    return (code ^ code >> 16) % BUCKETS


def generated(draw: random.Random) -> GroupSpec:
    """A group; half of them with one subscription for all, most with a target of before."""
    counts = {topic_id: draw.randint(1, 9) for topic_id in topic_ids(draw, draw.choice((1, 2, 3, 4, 6)))}
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


def as_lines(spec: GroupSpec, assignor: str, draw: random.Random) -> str:
    """For AssignGroups.java, with racks."""
    lines = []
    for topic, count in spec.partition_counts.items():
        racks = (",".join(draw.sample(RACKS, draw.randint(1, 3))) for _ in range(count))
        lines.append(f"topic|{topic.hex()}|{count}|{';'.join(racks)}")
    for member_id, member in spec.members.items():
        owned = ",".join(f"{topic.hex()}:{index}" for topic, indexes in member.target.items() for index in indexes)
        names = ",".join(topic.hex() for topic in member.topic_ids)
        lines.append(f"member|{member_id}|{member.instance_id or '-'}|{names}|{owned}|{draw.choice((*RACKS, '-'))}")
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


def test_assignments_are_those_of_kafkas_classes() -> None:
    draw = random.Random(SEED)
    cases = [(generated(draw), draw.choice(("uniform", "uniform", "range"))) for _ in range(GROUPS)]
    texts = [as_lines(spec, assignor, draw) for spec, assignor in cases]
    answers = run_java(ASSIGN, given="\n".join(texts)).splitlines()
    for (spec, assignor), text, line in zip(cases, texts, answers, strict=True):
        assert flat(ASSIGNORS[assignor](spec)) == read(line), text
