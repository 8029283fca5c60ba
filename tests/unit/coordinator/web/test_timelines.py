"""Events of a group from the records of their topic."""

from __future__ import annotations

from rota.coordinator.web.timelines import replay
from rota.protocol.group_timeline import EventType, GroupEvent, TimelineKey, encode_key, encode_value
from rota.protocol.records.record import Record, write_batch


def record(offset: int, group: str, slot: int, sequence: int | None) -> Record:
    key = encode_key(TimelineKey(group=group, slot=slot))
    event = None if sequence is None else GroupEvent(sequence=sequence, time_ms=1, type=EventType.LOADED)
    return Record(offset, 1, key, None if event is None else encode_value(event), ())


def test_the_last_record_of_a_slot_counts_and_others_are_passed_over() -> None:
    records = [
        record(0, "g", 0, 0),
        record(1, "other", 0, 1),
        record(2, "g", 1, 1),
        record(3, "g", 0, 256),
        record(4, "g", 1, None),
        Record(5, 1, b"\x00\x63?", b"of a newer broker", ()),
        Record(6, 1, b"", b"", ()),
    ]
    slots: dict[int, GroupEvent] = {}
    assert replay(slots, "g", write_batch(records)) == 7
    assert {slot: event.sequence for slot, event in slots.items()} == {0: 256}
    assert replay(slots, "g", b"") == 0
