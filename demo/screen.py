"""What the demo shows, as lines; live_screen.py has the picture for terminals."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any, Protocol, TextIO

from rota.demo.processes import Member
from rota.protocol.dataclass import dataclass

HIDDEN_FIELDS = ("event", "time", "level", "logger", "group")
REBALANCE_EVENTS = ("Preparing to rebalance", "Stabilized", "removed", "left", "leav", "expir")
MEMBER_ID_TAIL = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class State:
    """Everything that is shown. `committed` and `ends` are offsets by partition, `events` the broker's log lines."""

    chapter: str = ""
    members: list[Member] = field(default_factory=list)
    committed: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    def lag(self) -> int:
        """Records that the group has not committed yet."""
        return sum(end - self.committed.get(partition, 0) for partition, end in self.ends.items())

    def rebalances(self) -> list[dict[str, Any]]:
        """The log lines that say why the group rebalanced."""
        return [event for event in list(self.events) if _is_rebalance(event)]


class Screen(Protocol):
    def show(self, state: State) -> None:
        """Show what has changed since the last call."""


class LineScreen:
    """A line for each chapter and for each rebalance. No colours, no cursor movement."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.chapter = ""
        self.rebalances = 0

    def show(self, state: State) -> None:
        if state.chapter != self.chapter:
            self.chapter = state.chapter
            self._print(f"== {state.chapter}")
        rebalances = state.rebalances()
        for event in rebalances[self.rebalances :]:
            self._print(f"   {event['event']}  {fields(event)}")
        self.rebalances = len(rebalances)

    def _print(self, line: str) -> None:
        print(line, file=self.stream, flush=True)


def fields(event: dict[str, Any]) -> str:
    """`name=value …` of a log line, without the fields that all lines have and the tails of member ids."""
    shown = {name: value for name, value in event.items() if name not in HIDDEN_FIELDS and value is not None}
    return "  ".join(f"{name}={_short(str(value))}" for name, value in shown.items())


def _is_rebalance(event: dict[str, Any]) -> bool:
    return any(word in str(event.get("event")) for word in REBALANCE_EVENTS)


def _short(value: str) -> str:
    return MEMBER_ID_TAIL.sub("…", value).replace(" with group instance id None", "")
