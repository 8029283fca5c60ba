"""Records of KIP-848's groups. tests/unit/coordinator/consumer_group/test_records.py has a log of Kafka's."""

from __future__ import annotations

import pytest

from rota.protocol import consumer_group_records as wire
from rota.protocol.wire import DecodeError

MEMBER = "000003693102720670726f62650b2f3132372e302e302e310204766563010000ea600672616e676501000100"  # Kafka's


def test_a_member_of_kafka_is_read_and_written() -> None:
    key = wire.MemberKey(group="vecgroup", member_id="S")
    value = wire.decode_value(key, bytes.fromhex(MEMBER))
    assert (value.instance_id, value.rack_id, value.server_assignor) == ("i1", "r", "range")
    assert value.classic_member_metadata is None  # a tagged struct that is written although it is null
    assert wire.encode_value(value).hex() == MEMBER


@pytest.mark.parametrize("number", wire.KEY_TYPES)
def test_each_key_has_its_type_first(number: int) -> None:
    names = {"group": "g", "member_id": "m", "regular_expression": "r"}
    key_type = wire.KEY_TYPES[number]
    key = key_type(**{name: names[name] for name in key_type.__slots__})
    raw = wire.encode_key(key)
    assert raw[:2] == number.to_bytes(2, "big")
    assert wire.decode_key(raw) == key


def test_keys_of_other_kinds_and_values_of_other_versions() -> None:
    assert wire.decode_key(b"\0\2\0\1g") is None
    with pytest.raises(DecodeError):
        wire.decode_value(wire.EpochKey(group="g"), b"\0\1")
    with pytest.raises(DecodeError):
        wire.decode_key(b"\0")
