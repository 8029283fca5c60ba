"""A timeline keeps the last events of each group, in order and within bounds; its records give it back."""

from __future__ import annotations

import pytest

from rota.coordinator.observe import timeline
from rota.coordinator.observe.timeline import (
    Forget,
    GroupTimeline,
    Sizes,
    TimelineCodec,
    TimelineRecord,
    Timelines,
    decoded_since,
)
from rota.coordinator.runtime.contract import Append
from rota.protocol.group_timeline import EVENTS_PER_GROUP_MAX, EventType, GroupEvent


def event(time_ms: int = 5) -> GroupEvent:
    return GroupEvent(time_ms=time_ms, type=EventType.LOADED)


def test_events_are_returned_in_order_with_their_sequence() -> None:
    timelines = Timelines()
    for time_ms in range(3):
        timelines.add("g", event(time_ms))
    assert [(found.sequence, found.time_ms) for found in timelines.of("g")] == [(0, 0), (1, 1), (2, 2)]
    assert timelines.of("other") == ()
    assert timelines.groups() == ["g"]
    timelines.forget("g")
    assert timelines.of("g") == ()
    assert timelines.groups() == []


def test_tl17_the_events_since_the_last_of_a_type_are_those_that_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    timelines, reads = Timelines(), list[bytes]()
    types = [EventType.REBALANCE_STARTED, EventType.LOADED] * (EVENTS_PER_GROUP_MAX // 2 + 1)  # slots begin again
    for time_ms, event_type in enumerate([*types, EventType.MEMBER_LEFT]):
        timelines.add("g", GroupEvent(time_ms=time_ms, type=event_type))
    known, decode = timelines.of("g"), timeline.decode_value

    def counted(value: bytes) -> GroupEvent:
        reads.append(value)
        return decode(value)

    monkeypatch.setattr(timeline, "decode_value", counted)
    assert decoded_since(timelines.encoded("g"), EventType.REBALANCE_STARTED) == known[-3:]
    assert len(reads) == 3
    assert decoded_since(timelines.encoded("g"), EventType.EMPTIED) == known


def test_a_group_keeps_its_last_events() -> None:
    timelines = Timelines()
    for time_ms in range(EVENTS_PER_GROUP_MAX + 10):
        timelines.add("g", event(time_ms))
    events = timelines.of("g")
    assert (len(events), events[0].time_ms, events[-1].time_ms) == (256, 10, 265)


def test_replaying_the_records_gives_the_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    group, again, codec = GroupTimeline("g"), GroupTimeline("g"), TimelineCodec()
    records: list[TimelineRecord] = []
    for time_ms in range(EVENTS_PER_GROUP_MAX + 3):
        (effect,) = group.step(event(time_ms), 0, 0)
        assert isinstance(effect, Append)
        records.append(effect.record)
    for key, value in codec.encode(records):
        assert key is not None
        record = codec.decode(key, value)
        assert record is not None
        again.replay(record)
    assert again.describe() == group.describe()
    assert (again.next_sequence, again.size_bytes) == (group.next_sequence, group.size_bytes)


def test_a_timeline_that_is_forgotten_leaves_a_tombstone_for_each_slot() -> None:
    group = GroupTimeline("g")
    for _ in range(3):
        group.step(event(), 0, 0)
    effects = group.step(Forget(), 0, 0)
    assert [effect.record.slot for effect in effects if isinstance(effect, Append)] == [0, 1, 2]
    assert all(effect.record.value is None for effect in effects if isinstance(effect, Append))
    assert group.is_vacant
    assert group.size_bytes == 0


def test_tl8_keys_of_newer_versions_and_garbage_are_skipped() -> None:
    codec = TimelineCodec()
    assert codec.decode(b"\0\7anything", b"x") is None
    assert codec.decode(b"\0\0\0\1g\0\0\0\1", b"x") is None
    assert codec.decode(b"\0\0\0\1g\0\0\0\1", None) == TimelineRecord("g", 1, None)


def test_the_group_that_was_quiet_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "GROUPS_MAX", 3)
    timelines = Timelines()
    for group_id in ("a", "b", "c", "a", "d"):
        timelines.add(group_id, event())
    assert timelines.of("b") == ()
    assert [len(timelines.of(group_id)) for group_id in "acd"] == [2, 1, 1]


def test_the_bytes_of_all_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "BYTES_MAX", 2_000)
    timelines = Timelines()
    for number in range(100):
        timelines.add(f"g{number % 50}", event())
    kept = [group_id for group_id in timelines.groups() if timelines.of(group_id)]
    assert 0 < len(kept) < 20
    assert "g49" in kept


def test_sizes_are_summed_up() -> None:
    sizes = Sizes()
    sizes.set("a", 5)
    sizes.set("b", 7)
    sizes.set("a", 6)
    assert (sizes.total_bytes, list(sizes)) == (13, ["b", "a"])
    sizes.set("b", 0)
    assert (sizes.total_bytes, list(sizes), sizes.excess()) == (6, ["a"], None)
