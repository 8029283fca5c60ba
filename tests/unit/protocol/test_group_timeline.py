"""The records of `__rota_group_timeline`: what is encoded is decoded, and other versions do no harm."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest
from tests.unit.protocol.timeline_page import PAGE, decode

from rota.protocol.group_timeline import (
    EVENTS_PER_GROUP_MAX,
    EventMember,
    EventType,
    GroupEvent,
    Move,
    MovedPartitions,
    TimelineKey,
    Trigger,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    slot_of,
)
from rota.protocol.wire import DecodeError

EVENT = GroupEvent(
    sequence=7,
    time_ms=1_700_000_000_000,
    type=EventType.ASSIGNED,
    broker=2,
    generation=3,
    state="Stable",
    trigger=Trigger.MEMBER_JOINED,
    client_reason="rebalance enforced",
    duration_ms=12,
    protocol="range",
    leader="a",
    member_count=2,
    members=(EventMember(member_id="a", instance_id="i", client_id="c", client_host="/10.0.0.1", wait_ms=5),),
    moves=(Move(member_id="a", gained_count=2, gained=(MovedPartitions(topic="t", partitions=(0, 1)),)),),
)


def test_an_event_is_decoded_as_it_was_encoded() -> None:
    assert decode_value(encode_value(EVENT)) == EVENT
    plain = GroupEvent(time_ms=1, type=EventType.LOADED)
    assert decode_value(encode_value(plain)) == plain


def test_the_layout_of_a_key_is_fixed() -> None:
    key = TimelineKey(group="g", slot=5)
    assert encode_key(key) == b"\0\0\0\1g\0\0\0\5"
    assert decode_key(encode_key(key)) == key


def test_slots_go_round() -> None:
    assert [slot_of(0), slot_of(EVENTS_PER_GROUP_MAX - 1), slot_of(EVENTS_PER_GROUP_MAX + 1)] == [0, 255, 1]


def test_a_key_of_a_newer_version_is_skipped_and_a_value_is_decoded() -> None:
    assert decode_key(b"\0\1" + encode_key(TimelineKey(group="g", slot=5))[2:]) is None
    tagged = encode_value(EVENT)[:-1] + b"\x01\x09\x02ok"
    assert decode_value(b"\0\1" + tagged[2:]) == EVENT


@pytest.mark.parametrize("raw", [b"", b"\0", b"\xff\xff\0", b"\0\0\0"])
def test_garbage_raises_decode_error(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_value(raw)
    if len(raw) < 3:
        with pytest.raises(DecodeError):
            decode_key(raw)


def test_the_page_describes_every_byte() -> None:
    fields = decode(encode_key(TimelineKey(group="g", slot=7)), encode_value(EVENT))
    assert (fields.pop("version"), fields.pop("group"), fields.pop("slot")) == (0, "g", 7)
    event = asdict(EVENT)
    assert list(fields) == list(event)
    assert fields["members"] == list(event["members"])
    assert fields["moves"][0]["gained"] == [{"topic": "t", "partitions": [0, 1]}]
    plain = {name: value for name, value in fields.items() if name not in ("members", "moves")}
    assert plain == {name: value for name, value in event.items() if name not in ("members", "moves")}


def test_the_page_names_every_type_and_trigger() -> None:
    text = PAGE.read_text()
    rows = {int(number): name for number, name in re.findall(r"^\| (\d+) \| ([a-z-]+) \|", text, re.MULTILINE)}
    assert rows == {int(kind): kind.name.lower().replace("_", "-") for kind in EventType}
    assert all(f"`{trigger}`" in text for name, trigger in vars(Trigger).items() if name.isupper())
