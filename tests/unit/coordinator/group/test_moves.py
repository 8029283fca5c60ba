"""What an assignment moves: gained, lost and kept partitions by member, exact counts, bounded lists."""

from __future__ import annotations

from rota.coordinator.group.events import MemberId
from rota.coordinator.group.moves import (
    ASSIGNMENTS_BYTES_MAX,
    MEMBERS_COMPARED_MAX,
    MEMBERS_NAMED_MAX,
    PARTITIONS_COMPARED_MAX,
    PARTITIONS_NAMED_MAX,
    UNKNOWN,
    Moves,
    moves,
)
from rota.protocol.consumer_protocol import Assignment, TopicPartition, encode_assignment
from rota.protocol.group_timeline import Move, MovedPartitions


def part(*partitions: int, topic: str = "t") -> bytes:
    assigned = (TopicPartition(topic=topic, partitions=partitions),) if partitions else ()
    return encode_assignment(Assignment(assigned_partitions=assigned))


def parts(**by_member: bytes) -> dict[MemberId, bytes]:
    return {MemberId(member): raw for member, raw in by_member.items()}


def test_partitions_are_gained_lost_and_kept() -> None:
    moved = moves(parts(a=part(0, 1, 2)), parts(a=part(0, 1), b=part(2)))
    assert moved.partition_count == 3
    assert moved.by_member == (
        Move(
            member_id="a",
            lost_count=1,
            kept_count=2,
            lost=(MovedPartitions(topic="t", partitions=(2,)),),
            kept=(MovedPartitions(topic="t", partitions=(0, 1)),),
        ),
        Move(member_id="b", gained_count=1, gained=(MovedPartitions(topic="t", partitions=(2,)),)),
    )


def test_a_removed_member_lost_all_partitions() -> None:
    (leaving, stayed) = moves(parts(a=part(0), b=part(1)), parts(b=part(0, 1))).by_member
    assert (leaving.member_id, leaving.lost_count) == ("a", 1)
    assert (stayed.gained_count, stayed.kept_count) == (1, 1)


def test_an_empty_part_is_no_partition() -> None:
    assert moves({}, parts(a=b"")) == Moves((Move(member_id="a"),), 0)


def test_unreadable_metadata_is_unknown() -> None:
    assert moves({}, parts(a=b"\0")) == UNKNOWN
    assert moves(parts(a=b"A"), parts(a=part(1))) == Moves((), 1)
    assert moves(None, parts(a=part(1))) == Moves((), 1)


def test_lists_are_bounded_and_counts_exact() -> None:
    count = PARTITIONS_NAMED_MAX + 50
    (move,) = moves({}, parts(a=part(*range(count)))).by_member
    assert move.gained_count == count
    assert sum(len(topic.partitions) for topic in move.gained) == PARTITIONS_NAMED_MAX


def test_of_many_members_those_with_changes_are_named_and_the_others_summed_up() -> None:
    old = {MemberId(f"m{n}"): part(n) for n in range(MEMBERS_NAMED_MAX + 20)}
    new = {**old, MemberId("m110"): part(110, 500)}
    by_member = moves(old, new).by_member
    assert len(by_member) == MEMBERS_NAMED_MAX + 1
    assert (by_member[0].member_id, by_member[0].gained_count) == ("m110", 1)
    assert (by_member[-1].member_id, by_member[-1].kept_count) == ("", 20)


def test_too_large_assignments_are_not_compared() -> None:
    assert moves({}, {MemberId(str(n)): b"" for n in range(MEMBERS_COMPARED_MAX + 1)}) == UNKNOWN
    assert moves({}, parts(a=part(*range(PARTITIONS_COMPARED_MAX + 1)))) == UNKNOWN
    assert moves({}, parts(a=part(1) + bytes(ASSIGNMENTS_BYTES_MAX))) == UNKNOWN
