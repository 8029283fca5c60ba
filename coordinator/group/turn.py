"""One step of one group: the time it happens at and what comes out of it.

Law
    Effects keep the order in which they were decided: an Append stands before the replies that need it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rota.coordinator.group.effects import Append, Arm, Body, Disarm, Effect, Note, Record, Reply, refuse
from rota.coordinator.group.events import Token


@dataclass(slots=True)
class Turn:
    """`now_ms` is elapsed time, for deadlines; `wall_ms` is ms since the epoch, for what is stored and retained."""

    now_ms: int
    wall_ms: int
    effects: list[Effect] = field(default_factory=list)

    def append(self, record: Record) -> None:
        self.effects.append(Append(record))

    def reply(self, token: Token, body: Body) -> None:
        """An answer computed from the group's state: it waits until that state is durable."""
        self.effects.append(Reply(token, body))

    def refuse(self, token: Token, body: Body) -> None:
        self.effects.append(refuse(token, body))

    def arm(self, key: str, at_ms: int) -> None:
        self.effects.append(Arm(key, at_ms))

    def disarm(self, key: str) -> None:
        self.effects.append(Disarm(key))

    def note(self, event: str, fields: dict[str, object]) -> None:
        self.effects.append(Note(event, fields))
