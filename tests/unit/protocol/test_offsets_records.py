"""Vectors are records that Apache Kafka 4.3.1 wrote into its own `__consumer_offsets`."""

from __future__ import annotations

import pytest

from rota.protocol.offsets_records import (
    GROUP_VERSION,
    OFFSET_VERSION,
    OFFSET_WITH_EXPIRY_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    offset_writer,
)
from rota.protocol.wire import UUID_ZERO, DecodeError

NEW_GROUP = (
    "0002000b776972657665632d64796e",
    "0003000000000000ffffffff000001a1fe21e2df00000000",
)
STABLE_GROUP = (
    "0002000b776972657665632d64796e",
    (
        "00030008636f6e73756d657200000002000572616e67650028636c692d30663566393730352d303063352d346335382d3934"
        "37642d333932393136643165626533000001a1fe21e350000000010028636c692d30663566393730352d303063352d346335"
        "382d393437642d333932393136643165626533ffff0003636c69000a2f3132372e302e302e31000493e00000afc800000013"
        "000000000001000777697265766563000000000000001f000000000001000777697265766563000000020000000000000001"
        "00000000"
    ),
)
EMPTY_GROUP = (
    "0002000b776972657665632d64796e",
    "00030008636f6e73756d657200000003ffffffff000001a1fe21e4de00000000",
)
STATIC_MEMBER = (
    "0002000e776972657665632d737461746963",
    (
        "00030008636f6e73756d657200000002000572616e6765002b696e73742d312d35623830663438622d613066662d34343933"
        "2d383964612d623333386366336365333337000001a1fe21e55600000001002b696e73742d312d35623830663438622d6130"
        "66662d343439332d383964612d6233333863663363653333370006696e73742d310003636c69000a2f3132372e302e302e31"
        "000493e00000afc800000013000000000001000777697265766563000000000000001f000000000001000777697265766563"
        "00000002000000000000000100000000"
    ),
)
OFFSET = (
    "0001000b776972657665632d64796e00077769726576656300000000",
    "0004000000000000000500000007086772c3bcc39f65000001a1fe21e4d50100103d50356d3dc1474091642e39c8054927",
)
OFFSET_WITHOUT_METADATA = (
    "0001000e776972657665632d73746174696300077769726576656300000001",
    "00040000000000000000ffffffff01000001a1fe21e6dd0100103d50356d3dc1474091642e39c8054927",
)
OFFSET_WITH_EXPIRY = (
    "0001000a776972657665632d733200077769726576656300000001",
    "0001000000000000002a00016d000001a1fe21e78e000001a1fe58d60e",
)

GROUPS = [NEW_GROUP, STABLE_GROUP, EMPTY_GROUP, STATIC_MEMBER]
OFFSETS = [OFFSET, OFFSET_WITHOUT_METADATA]


@pytest.mark.parametrize(("key", "value"), GROUPS)
def test_group_records_of_kafka_survive_decode_and_encode(key: str, value: str) -> None:
    found = decode_value(GroupMetadataValue, bytes.fromhex(value))
    assert encode_value(found, GROUP_VERSION).hex() == value
    assert encode_key(decode_key(bytes.fromhex(key)) or GroupMetadataKey(group="?")).hex() == key


@pytest.mark.parametrize(
    ("key", "value", "version"),
    [(*item, OFFSET_VERSION) for item in OFFSETS] + [(*OFFSET_WITH_EXPIRY, OFFSET_WITH_EXPIRY_VERSION)],
)
def test_offset_records_of_kafka_survive_decode_and_encode(key: str, value: str, version: int) -> None:
    found = decode_value(OffsetCommitValue, bytes.fromhex(value))
    assert encode_value(found, version).hex() == value
    assert encode_key(decode_key(bytes.fromhex(key)) or GroupMetadataKey(group="?")).hex() == key


def test_an_offset_record_of_kafka_is_decoded() -> None:
    key, value = map(bytes.fromhex, OFFSET)
    assert decode_key(key) == OffsetCommitKey(group="wirevec-dyn", topic="wirevec", partition=0)
    found = decode_value(OffsetCommitValue, value)
    assert (found.offset, found.leader_epoch, found.metadata) == (5, 7, "grüße")
    assert found.topic_id.hex() == "3d50356d3dc1474091642e39c8054927"
    assert (found.commit_timestamp, found.expire_timestamp) == (1795264996565, -1)


def test_a_retention_time_makes_an_older_value() -> None:
    found = decode_value(OffsetCommitValue, bytes.fromhex(OFFSET_WITH_EXPIRY[1]))
    assert found.expire_timestamp - found.commit_timestamp == 3_600_000
    assert found.topic_id == bytes(16)


def test_a_group_record_of_kafka_is_decoded() -> None:
    key, value = map(bytes.fromhex, STATIC_MEMBER)
    assert decode_key(key) == GroupMetadataKey(group="wirevec-static")
    found = decode_value(GroupMetadataValue, value)
    (member,) = found.members
    assert (found.protocol_type, found.generation, found.protocol) == ("consumer", 2, "range")
    assert found.leader == member.member_id
    assert (member.group_instance_id, member.client_id, member.client_host) == ("inst-1", "cli", "/127.0.0.1")
    assert (member.rebalance_timeout, member.session_timeout) == (300_000, 45_000)


def test_a_group_without_members_has_no_protocol_and_no_leader() -> None:
    found = decode_value(GroupMetadataValue, bytes.fromhex(EMPTY_GROUP[1]))
    assert (found.generation, found.protocol, found.leader, found.members) == (3, None, None, ())


@pytest.mark.parametrize("version", GroupMetadataValue.VERSIONS)
def test_every_version_of_a_group_is_read(version: int) -> None:
    member = MemberMetadata(
        member_id="m", client_id="c", client_host="/h", session_timeout=1, subscription=b"s", assignment=b""
    )
    value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="m", members=(member,))
    assert decode_value(GroupMetadataValue, encode_value(value, version)) == value


@pytest.mark.parametrize("version", OffsetCommitValue.VERSIONS)
def test_every_version_of_an_offset_is_read(version: int) -> None:
    value = OffsetCommitValue(offset=9, metadata="m", commit_timestamp=4)
    assert decode_value(OffsetCommitValue, encode_value(value, version)) == value


def test_type_0_is_an_offset_of_long_ago() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    assert decode_key(b"\0\0" + encode_key(key)[2:]) == key


def test_a_type_of_a_newer_broker_is_none() -> None:
    assert decode_key(b"\0\x03anything") is None
    assert decode_key(b"\xff\xff") is None


@pytest.mark.parametrize("raw", [b"", b"\0", b"\0\x01", b"\0\x01\0\x05abc", b"\0\x02\xff\xff"])
def test_invalid_keys_are_refused(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_key(raw)


@pytest.mark.parametrize("raw", [b"", b"\0\x05" + bytes(40), b"\xff\xff" + bytes(40), b"\0\x04\0"])
def test_invalid_values_are_refused(raw: bytes) -> None:
    for message in (OffsetCommitValue, GroupMetadataValue):
        with pytest.raises(DecodeError):
            decode_value(message, raw)


@pytest.mark.parametrize("version", OffsetCommitValue.VERSIONS)
@pytest.mark.parametrize("topic_id", [UUID_ZERO, b"i" * 16])
def test_an_offset_is_written_from_its_fields(version: int, topic_id: bytes) -> None:
    fields = {"offset": 9, "leader_epoch": 3, "metadata": "ü" * 99, "commit_timestamp": 4, "expire_timestamp": 5}
    value = OffsetCommitValue(**fields, topic_id=topic_id)
    since = {"leader_epoch": range(3, 5), "expire_timestamp": range(1, 2)}
    given = [fields[name] for name in fields if version in since.get(name, range(5))]
    written = offset_writer(version)(*given, *([topic_id] if version >= 4 else []))
    assert written == encode_value(value, version)
