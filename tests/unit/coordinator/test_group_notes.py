"""The notes of groups: what becomes of them, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog
from structlog.testing import capture_logs

from rota.coordinator import group_notes
from rota.coordinator.group import notes
from rota.coordinator.group_notes import GroupNotes
from rota.coordinator.observe.line_limit import LINES_PER_GROUP_MAX, WINDOW_MS
from rota.coordinator.observe.timeline import Timelines
from rota.coordinator.runtime.contract import Note
from rota.coordinator.scheduling.tick_queue import TickQueue
from rota.protocol.group_timeline import EventType, GroupEvent

BROKER = 3


class World:
    """Notes of groups with a clock and a queue for the end of the turn."""

    def __init__(self, timelines: Timelines | None = None) -> None:
        self.now_ms = 1_000
        self.timelines = timelines or Timelines()
        self.queue: list[Callable[[], object]] = []  # of the loop
        self.tick_queue = TickQueue(self.queue.append, pytest.fail)
        self.changed: list[str] = []
        self.notes = GroupNotes(
            self.timelines,
            self.changed.append,
            BROKER,
            lambda: self.now_ms,
            lambda: self.now_ms,
            self.tick_queue,
        )

    def note(self, event: str, group_id: str = "g", **timeline: object) -> None:
        self.notes.add(group_id, Note(event, {"group": group_id, "state": "Empty"}, timeline))

    def turn(self) -> None:
        calls, self.queue[:] = self.queue[:], []
        for call in calls:
            call()

    def turns(self) -> None:
        """The turn of the notes that wait, and the next one, in which they are written."""
        self.turn()
        self.turn()

    def types(self, group_id: str = "g") -> list[int]:
        return [event.type for event in self.timelines.of(group_id)]


@pytest.fixture
def world() -> World:
    return World()


def test_tl16_the_notes_of_a_turn_are_written_after_its_replies_in_their_order(world: World) -> None:
    with capture_logs() as lines:
        world.note(notes.MEMBER_ADDED)
        world.note(notes.PREPARING, trigger="member-joined")
        world.note(notes.NOW_EMPTY, "other")
        replies = list[int]()
        world.tick_queue(lambda: world.tick_queue(lambda: replies.append(len(lines))))  # a write, then its replies
        world.turn()
        assert (world.types(), lines, replies) == ([], [], [0])
        world.turn()
    assert world.types() == [EventType.MEMBER_JOINED, EventType.REBALANCE_STARTED]
    assert [(line["event"], line["group"]) for line in lines] == [
        (notes.MEMBER_ADDED, "g"),
        (notes.PREPARING, "g"),
        (notes.NOW_EMPTY, "other"),
    ]
    assert world.changed == ["g", "other"]
    (event,) = world.timelines.of("other")
    assert (event.time_ms, event.broker, event.state) == (1_000, BROKER, "Empty")


def test_tl16_write_does_not_wait_for_the_end_of_the_turn_and_nothing_is_written_twice(world: World) -> None:
    world.note(notes.NOW_EMPTY)
    world.notes.write()
    assert world.types() == [EventType.EMPTIED]
    world.turns()
    assert world.types() == [EventType.EMPTIED]
    world.note(notes.LOADED)
    world.turns()
    assert world.types() == [EventType.EMPTIED, EventType.LOADED]


def test_tl16_a_turn_with_many_notes_keeps_a_bounded_number_of_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_notes, "WAITING_MAX", 3)
    for _ in range(4):
        world.note(notes.NOW_EMPTY)
    assert world.types() == [EventType.EMPTIED] * 3
    world.turns()
    assert world.types() == [EventType.EMPTIED] * 4
    world.turns()
    world.turns()
    assert (world.types(), world.queue) == ([EventType.EMPTIED] * 4, [])


def test_a_note_for_the_log_alone_is_no_event(world: World) -> None:
    with capture_logs() as lines:
        world.note(notes.MEMBER_ID_REQUIRED)
        world.turns()
    assert (world.types(), world.changed, len(lines)) == ([], [], 1)


def test_a_deleted_group_has_no_timeline_and_no_rebalance_under_way(world: World) -> None:
    world.note(notes.PREPARING, trigger="member-joined")
    world.turns()
    world.note(notes.DELETED)
    world.turns()
    assert world.types() == []
    assert world.changed == ["g"]
    world.note(notes.NOW_EMPTY, "other")
    for event in (notes.NOW_EMPTY, notes.DELETED, notes.LOADED):
        world.note(event)
    world.turns()
    assert world.types("other") == [EventType.EMPTIED]
    assert world.types() == [EventType.LOADED], "what came before the deletion, in the same turn, is forgotten"
    assert world.notes.rebalances.began_count == {"member-joined": 1}
    assert world.notes.rebalances.ended["member-joined"].requests == 1


def test_tl14_a_rebalance_without_a_trigger_is_counted_as_other(world: World) -> None:
    world.note(notes.PREPARING)
    world.note(notes.ASSIGNED)
    world.turns()
    assert world.notes.rebalances.began_count == {"other": 1}
    assert world.notes.rebalances.ended["other"].requests == 1


class Failing(Timelines):
    """Timelines that fail for one group."""

    def add(self, group_id: str, event: GroupEvent) -> None:
        if group_id == "bad":
            raise RuntimeError("a mistake")
        super().add(group_id, event)


def test_tl1_a_mistake_loses_one_event_not_its_line_and_not_the_others() -> None:
    world = World(Failing())
    with capture_logs() as lines:
        for group_id in ("bad", "bad", "g"):
            world.note(notes.NOW_EMPTY, group_id)
        world.turns()
    assert world.types() == [EventType.EMPTIED]
    assert world.notes.lost_events == 2
    assert [line["event"] for line in lines].count(notes.NOW_EMPTY) == 3
    assert [line["event"] for line in lines].count("Timeline event was lost") == 1


def test_tl1_a_failure_of_who_hears_of_events_loses_no_event_and_no_line(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(group_id: str) -> None:
        raise RuntimeError(group_id)

    monkeypatch.setattr(world.notes, "_event_added", fails)
    with capture_logs() as lines:
        world.note(notes.NOW_EMPTY)
        world.note(notes.NOW_EMPTY, "other")
        world.turns()
    assert (world.types(), world.types("other")) == ([EventType.EMPTIED], [EventType.EMPTIED])
    assert [line["event"] for line in lines].count(notes.NOW_EMPTY) == 2


def raises(logger: object, level: str, event: dict[str, object]) -> str:
    if event["event"] in (notes.NOW_EMPTY, "Timeline event was lost"):
        raise RuntimeError("a processor of the application")
    raise structlog.DropEvent


def test_tl1_a_log_that_raises_loses_its_line_and_no_event() -> None:
    """A broker of the test kit logs by the structlog configuration of its application."""
    world = World(Failing())
    structlog.configure(processors=[raises])
    try:
        for group_id in ("g", "bad", "other"):
            world.note(notes.NOW_EMPTY, group_id)
        world.note(notes.LOADED)
        world.turns()
    finally:
        structlog.reset_defaults()
    assert (world.types(), world.types("other")) == ([EventType.EMPTIED, EventType.LOADED], [EventType.EMPTIED])
    assert (world.notes.lost_events, world.notes.lost_lines) == (1, 4), "one is that of the lost event"


def test_lg5_lines_beyond_the_limit_are_left_out_and_counted(world: World) -> None:
    with capture_logs() as lines:
        for _ in range(LINES_PER_GROUP_MAX + 2):
            world.note(notes.MEMBER_ID_REQUIRED)
        world.turns()
        assert len(lines) == LINES_PER_GROUP_MAX
        world.now_ms += WINDOW_MS
        world.notes.log_left_out()
    assert (lines[-1]["group"], lines[-1]["lines"]) == ("g", 2)


def test_tl1_a_log_that_cannot_even_be_bound_loses_its_lines_and_no_event() -> None:
    def raises_at_once(*_: object) -> object:
        raise RuntimeError("a factory of the application")

    world = World()
    structlog.configure(logger_factory=raises_at_once)
    try:
        world.note(notes.NOW_EMPTY)
        world.note(notes.NOW_EMPTY, "other")
        world.turns()
    finally:
        structlog.reset_defaults()
    assert (world.types(), world.types("other")) == ([EventType.EMPTIED], [EventType.EMPTIED])
    assert world.notes.lost_lines == 2
