"""Events of a timeline from its records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.cli.group_why import apply
from rota.client.types import ConsumerRecord
from rota.protocol.group_timeline import TOPIC, EventType, GroupEvent, TimelineKey, encode_key, encode_value


def record(group: str, slot: int, event: GroupEvent | None) -> ConsumerRecord:
    value = None if event is None else encode_value(event)
    return ConsumerRecord(TOPIC, 0, 0, 0, 0, encode_key(TimelineKey(group=group, slot=slot)), value)


def event(sequence: int) -> GroupEvent:
    return GroupEvent(sequence=sequence, time_ms=sequence, type=EventType.MEMBER_LEFT)


def test_slots_are_overwritten_and_emptied_and_other_groups_left_out() -> None:
    events: dict[int, GroupEvent] = {}
    apply(events, "g", [record("g", 0, event(0)), record("g", 1, event(1)), record("other", 2, event(2))])
    apply(events, "g", [record("g", 0, event(256)), record("g", 1, None)])
    assert {slot: each.sequence for slot, each in events.items()} == {0: 256}


@given(st.none() | st.binary(), st.none() | st.binary())
def test_garbage_is_skipped(key: bytes | None, value: bytes | None) -> None:
    events = {0: event(0)}
    apply(events, "g", [ConsumerRecord(TOPIC, 0, 0, 0, 0, key, value)])
    assert set(events) <= {0}


def test_a_value_of_garbage_is_skipped() -> None:
    events: dict[int, GroupEvent] = {}
    key = encode_key(TimelineKey(group="g", slot=0))
    apply(events, "g", [ConsumerRecord(TOPIC, 0, 0, 0, 0, key, b"\x00\x00")])
    assert events == {}
