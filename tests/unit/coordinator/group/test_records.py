"""What the machine decides comes back from its bytes. The bytes themselves are held by the protocol's tests."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.group.effects import GroupRecord, GroupValue, MemberValue, OffsetRecord, OffsetValue
from rota.coordinator.group.events import InstanceId, MemberId
from rota.coordinator.group.offsets import each_offset
from rota.coordinator.group.records import decode, decode_many, encode
from rota.protocol.offsets_records import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from rota.protocol.wire import UUID_ZERO

text = st.text(max_size=20)
int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
members = st.builds(
    MemberValue,
    member_id=text.map(MemberId),
    instance_id=st.none() | text.map(InstanceId),
    client_id=text,
    client_host=text,
    rebalance_ms=st.integers(0, 2**31 - 1),
    session_ms=int32,
    subscription=st.binary(max_size=40),
    assignment=st.binary(max_size=40),
)
groups = st.builds(
    GroupValue,
    protocol_type=text,
    generation=int32,
    protocol=st.none() | text,
    leader=st.none() | text.map(MemberId),
    state_ms=int64,
    members=st.lists(members, max_size=4).map(tuple),
)
offsets = st.builds(
    OffsetValue,
    offset=int64,
    leader_epoch=int32,
    metadata=text,
    commit_ms=int64,
    topic_id=st.none() | st.binary(min_size=16, max_size=16).filter(any),
)


@given(text, groups)
def test_a_group_record_survives_encode_and_decode(group_id: str, value: GroupValue) -> None:
    record = GroupRecord(group_id, value)
    ((key, raw),) = encode([record])
    assert key is not None
    assert raw is not None
    assert decode(key, raw) == record


@given(text, groups, st.booleans())
def test_a_group_is_written_as_its_declaration_says(group_id: str, value: GroupValue, is_shared: bool) -> None:
    """Also where members have the same client and subscription, which are encoded once."""
    if is_shared and value.members:
        first = value.members[0]
        alike = [replace(first, member_id=each.member_id, assignment=each.assignment) for each in value.members]
        value = replace(value, members=tuple(alike))
    written = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_ms,
            session_timeout=member.session_ms,
            subscription=member.subscription,
            assignment=member.assignment,
        )
        for member in value.members
    ]
    declared = GroupMetadataValue(
        protocol_type=value.protocol_type,
        generation=value.generation,
        protocol=value.protocol,
        leader=value.leader,
        current_state_timestamp=value.state_ms,
        members=tuple(written),
    )
    ((_, raw),) = encode([GroupRecord(group_id, value)])
    assert raw == encode_value(declared, 3)


@given(text, text, int32, offsets)
def test_an_offset_record_survives_encode_and_decode(
    group_id: str, topic: str, partition: int, value: OffsetValue
) -> None:
    record = OffsetRecord(group_id, topic, partition, value)
    ((key, raw),) = encode([record])
    assert key is not None
    assert raw is not None
    assert decode(key, raw) == record


@given(text, text, int32, offsets)
def test_an_offset_without_an_expiry_has_the_bytes_of_the_general_encoder(
    group_id: str, topic: str, partition: int, value: OffsetValue
) -> None:
    value.expire_ms = None
    expected = OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_ms,
        topic_id=value.topic_id or UUID_ZERO,
    )
    key = encode_key(OffsetCommitKey(group=group_id, topic=topic, partition=partition))
    assert encode([OffsetRecord(group_id, topic, partition, value)]) == [(key, encode_value(expected, 4))]


@given(offsets, st.integers(0, 2**62))
def test_an_offset_with_an_expiry_is_written_in_version_1(value: OffsetValue, expire_ms: int) -> None:
    dated = OffsetValue(
        offset=value.offset,
        leader_epoch=-1,  # version 1 has no place for it
        metadata=value.metadata,
        commit_ms=value.commit_ms,
        expire_ms=expire_ms,
    )
    ((key, raw),) = encode([OffsetRecord("g", "t", 0, dated)])
    assert key is not None
    assert raw is not None
    assert raw[:2] == b"\x00\x01"
    assert decode(key, raw) == OffsetRecord("g", "t", 0, dated)


def test_a_removed_key_is_a_tombstone() -> None:
    removed = [OffsetRecord("g", "t", 0, None), GroupRecord("g", None)]
    encoded = encode(removed)
    assert [value for _, value in encoded] == [None, None]
    assert [decode(key or b"", value) for key, value in encoded] == removed


def test_a_key_of_another_kind_is_nothing_to_us() -> None:
    assert decode((3).to_bytes(2, "big") + b"\x00\x01g", b"\x00\x00") is None


@given(st.lists(st.builds(OffsetRecord, text, text, int32, st.none() | offsets), max_size=6))
def test_encoding_many_offsets_equals_encoding_each(records: list[OffsetRecord]) -> None:
    assert encode(records) == [encoded for record in records for encoded in encode([record])]
    for record, (key, _) in zip(records, encode(records), strict=True):
        assert key == encode_key(OffsetCommitKey(group=record.group_id, topic=record.topic, partition=record.partition))


NAMES = st.sampled_from(("g", "h"))


@given(st.lists(st.builds(OffsetRecord, NAMES, NAMES, st.integers(0, 3), st.none() | offsets), max_size=12))
def test_decoding_records_in_a_row_equals_decoding_each(records: list[OffsetRecord]) -> None:
    entries = [(key or b"", value) for key, value in encode([*records, GroupRecord("g", None)])]
    entries.insert(1, ((3).to_bytes(2, "big") + b"\x00\x01g", b"\x00\x00"))  # a newer broker's
    many = list(decode_many(entries, decode))
    expected = [record for record in (decode(*entry) for entry in entries) if record is not None]
    assert [*each_offset(many)] == [record for record in expected if type(record) is OffsetRecord]
    assert [record for record in many if type(record) is GroupRecord] == [GroupRecord("g", None)]
