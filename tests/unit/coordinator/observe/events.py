"""Builds timelines for tests: events of one group, a second apart unless a time is given."""

from __future__ import annotations

from typing import Any

from rota.protocol.group_timeline import EventMember, EventType, GroupEvent

START_MS = 1_700_000_000_000


def member(name: str, *, instance: str | None = None, host: str = "/10.0.0.1", wait_ms: int = -1) -> EventMember:
    """Return a member whose client id is the first word of its id."""
    client_id = name.split("-")[0]
    return EventMember(member_id=name, instance_id=instance, client_id=client_id, client_host=host, wait_ms=wait_ms)


class Timeline:
    """The events of one group, in order."""

    def __init__(self) -> None:
        self.events: list[GroupEvent] = []
        self.now_ms = START_MS

    def add(self, event_type: EventType, *members: EventMember, after_ms: int = 1_000, **fields: Any) -> Timeline:
        """Add an event `after_ms` after the one before."""
        self.now_ms += after_ms
        event = GroupEvent(sequence=len(self.events), time_ms=self.now_ms, type=event_type, members=members, **fields)
        self.events.append(event)
        return self
