"""Records that Apache Kafka 4.3.1 wrote are read into the state and written again byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.coordinator.consumer_group import records
from rota.coordinator.consumer_group.member import ClassicMember, Member, MemberState
from rota.coordinator.consumer_group.records import ConsumerRecord, decode, encode
from rota.coordinator.consumer_group.state import ConsumerGroup
from rota.protocol import consumer_group_records as wire

VECTORS = [
    (bytes.fromhex(key), None if value == "None" else bytes.fromhex(value))
    for key, value in (line.split() for line in Path(__file__).with_name("kafka_records.txt").read_text().splitlines())
]


def again(group: ConsumerGroup, record: ConsumerRecord) -> ConsumerRecord:
    """The record that the state makes, which replay has made from this one."""
    key, group_id = record.key, record.group_id
    match key:
        case wire.EpochKey():
            return records.epoch(group_id, group.epoch, group.metadata_hash)
        case wire.TargetEpochKey():
            return records.target_epoch(group_id, group.target_epoch, group.target_ms)
        case wire.MemberKey():
            return records.member(group_id, group.members[key.member_id])
        case wire.TargetMemberKey():
            return records.target(group_id, key.member_id, group.targets[key.member_id])
        case wire.CurrentAssignmentKey():
            return records.current(group_id, group.members[key.member_id])
        case _:
            found = group.regexes[key.regular_expression]
            return records.regex(group_id, key.regular_expression, found.topics, found.version, found.wall_ms)


def test_a_whole_log_of_kafka_is_written_again_byte_for_byte() -> None:
    group = ConsumerGroup("vecgroup")
    kinds = set()
    for key, value in VECTORS:
        record = decode(key, value)
        assert record is not None
        group.replay(record)
        kinds.add(type(record.key))
        assert encode(record if value is None else again(group, record)) == (key, value)
    assert len(kinds) == 6
    assert not group.members
    assert (group.epoch, group.target_epoch, group.metadata_hash) == (9, 3, 0)


def test_the_tombstones_of_a_member_are_in_kafkas_order() -> None:
    position = next(index for index, (key, value) in enumerate(VECTORS) if value is None)
    kafkas = [key for key, _ in VECTORS[position : position + 3]]
    assert [encode(each) for each in records.removed_member("vecgroup", "S")] == [(key, None) for key in kafkas]


def test_records_before_kafka_4_2_have_the_member_epoch_for_each_partition() -> None:
    old = wire.CurrentAssignmentValue(
        member_epoch=5,
        previous_member_epoch=4,
        state=0,
        assigned_partitions=(wire.CurrentPartitions(topic_id=b"t" * 16, partitions=(1, 2)),),
    )
    assert records.with_current(Member(member_id="m"), old).assigned == {b"t" * 16: {1: 5, 2: 5}}


def test_a_state_of_a_newer_broker_is_unknown() -> None:
    value = wire.CurrentAssignmentValue(member_epoch=5, previous_member_epoch=4, state=9)
    assert records.with_current(Member(member_id="m"), value).state is MemberState.UNKNOWN


def test_a_member_of_the_classic_protocol_keeps_what_it_joined_with() -> None:
    member = Member(member_id="m", classic=ClassicMember(10_000, (("range", b"x"),)))
    record = decode(*encode(records.member("g", member)))
    assert record is not None
    assert records.with_metadata(Member(member_id="m"), record.value) == member


@pytest.mark.parametrize("kind", [0, 1, 2, 9, 15])
def test_other_kinds_of_keys_are_not_decoded(kind: int) -> None:
    assert decode(kind.to_bytes(2, "big") + b"\0\1g", b"") is None


def test_a_record_fits_up_to_the_size_of_a_batch() -> None:
    record = records.member("g", Member(member_id="m", topic_names=frozenset(["x" * 1_000])))
    key, value = records.encode(record)
    assert key is not None
    assert value is not None
    size = len(key) + len(value) + records.BATCH_OVERHEAD_BYTES
    assert records.can_fit_in_batch(record, size)
    assert not records.can_fit_in_batch(record, size - 1)
