"""The notes of groups, which become events of their timelines and lines of the log: all those of a turn together.

A step of a group only leaves its notes here. To make events and lines of them takes as long as the steps do, and less
for many notes in a row: interpreted code that runs again is still in the processor's caches. They are written when the
replies of the turn have been sent: clients go on meanwhile, and more of their requests come together in a turn.

Laws
    TL1 No failure of a timeline or of the log reaches a group or another note; events and lines that are lost are
        counted.
    TL16 The notes of a turn are written after its replies, in the next turn, events and lines each in their order; or
        before that when there are WAITING_MAX of them, and by `write`, which is called before a timeline is read and
        before the partitions of the timelines are given up.
    LG5 Lines of a group beyond the limit are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from rota.coordinator.group.timeline_event import brief, event_of
from rota.coordinator.observe.counters import RebalanceCounters
from rota.coordinator.observe.line_limit import LineLimit
from rota.coordinator.observe.logs import info_all
from rota.coordinator.observe.timeline import TimelineStore
from rota.coordinator.runtime.contract import Note
from rota.protocol.group_timeline import EventType, GroupEvent, is_end_of_rebalance

log = structlog.get_logger("rota.coordinator")

WRITE_CALLS: Final = 2  # of the tick queue until notes are written: what is decided in a turn is answered in it
OTHER_TRIGGER: Final = "other"
WAITING_MAX: Final = 1_024  # notes: their texts are those of requests, which are not cut yet
_REBALANCE_STARTED, _DELETED = EventType.REBALANCE_STARTED, EventType.DELETED  # bound once, for speed


class GroupNotes:
    """The notes of all groups of a broker that are not written yet, and where they are written."""

    def __init__(
        self,
        timelines: TimelineStore,
        event_added: Callable[[str], None],
        broker: int,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tick_queue: Callable[[Callable[[], None]], object],
    ) -> None:
        """`event_added` is called with each group whose timeline has got an event; `broker` is this one's number."""
        self.rebalances = RebalanceCounters()
        self.lost_events = self.lost_lines = 0  # by mistakes of our own, and by a log that raises
        self._timelines, self._event_added, self._broker = timelines, event_added, broker
        self._wall_ms, self._tick_queue = wall_ms, tick_queue
        self._line_limit = LineLimit(now_ms)
        self._waiting: list[tuple[str, Note]] = []

    def add(self, group_id: str, note: Note) -> None:
        """Let a note be written after this turn."""
        if not self._waiting:
            self._tick_queue(partial(self._write_after, WRITE_CALLS))
        self._waiting.append((group_id, note))
        if len(self._waiting) >= WAITING_MAX:
            self.write()

    def _write_after(self, calls: int) -> None:
        if calls == 0:
            self.write()
        else:
            self._tick_queue(partial(self._write_after, calls - 1))

    def write(self) -> None:
        """Write the notes that wait."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._write_events(waiting)
            try:
                self._write_lines(waiting)
            except Exception:  # noqa: BLE001  # the log of a process that set up structlog itself
                self.lost_lines += len(waiting)

    def log_left_out(self) -> None:
        """Log how many lines of each group were left out."""
        for group_id, lines in self._line_limit.take_left_out():
            log.warning("Lines of a group are left out; its timeline has the events", group=group_id, lines=lines)

    def _write_events(self, waiting: list[tuple[str, Note]]) -> None:
        wall_ms, events = self._wall_ms(), list[tuple[str, GroupEvent]]()
        for group_id, note in waiting:
            try:
                event = event_of(note, wall_ms, self._broker)
                if event is None:
                    continue
                self._count(group_id, event)
                if event.type == _DELETED:
                    self._add(events)  # those before it are forgotten, too
                    events = []
                    self._timelines.forget(group_id)
                else:
                    events.append((group_id, event))
            except Exception as mistake:  # noqa: BLE001  # whatever it is: the group goes on without this event
                self._lose(group_id, mistake)
        self._add(events)

    def _add(self, events: list[tuple[str, GroupEvent]]) -> None:
        for group_id, mistake in self._timelines.add_all(events):
            self._lose(group_id, mistake)
        for group_id in dict.fromkeys([group_id for group_id, _ in events]):
            try:
                self._event_added(group_id)
            except Exception as mistake:  # noqa: BLE001  # as above
                self._lose(group_id, mistake)

    def _lose(self, group_id: str, mistake: Exception) -> None:
        self.lost_events += 1
        if self.lost_events == 1:
            try:
                log.error("Timeline event was lost", group=group_id, exc_info=mistake)
            except Exception:  # noqa: BLE001  # the log of a process that set up structlog itself
                self.lost_lines += 1

    def _write_lines(self, waiting: list[tuple[str, Note]]) -> None:
        admit = self._line_limit.admit
        admitted = [brief(note) for group_id, note in waiting if admit(group_id)]
        self.lost_lines += info_all(log, [(note.event, note.fields) for note in admitted])

    def _count(self, group_id: str, event: GroupEvent) -> None:
        if event.type == _REBALANCE_STARTED:
            self.rebalances.began(group_id, event.trigger or OTHER_TRIGGER)
        elif event.type == _DELETED or is_end_of_rebalance(event):
            self.rebalances.ended_now(group_id)
