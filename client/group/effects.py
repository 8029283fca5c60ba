"""What comes out of a membership: requests, hooks, timers, wishes for metadata, lines for the log.

Everything that is answered later carries a ticket: the event that answers it brings the same one. An answer whose
ticket the machine does not wait for any more changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rota.client.types import TopicPartition

Partitions = tuple[TopicPartition, ...]

# ---- hooks


@dataclass(slots=True)
class BeforeRejoin:
    """The place for the automatic commit."""


@dataclass(slots=True)
class Revoke:
    """Still ours, about to be given up."""

    partitions: Partitions


@dataclass(slots=True)
class Lose:
    """No longer ours."""

    partitions: Partitions


@dataclass(slots=True)
class Assign:
    """What we own now, and which of it is new."""

    owned: Partitions
    added: Partitions


@dataclass(slots=True)
class BeforeLeaving:
    """The place for the last commit."""


Hook = BeforeRejoin | Revoke | Lose | Assign | BeforeLeaving

# ---- effects


@dataclass(slots=True)
class Find:
    """Look for the coordinator: Found or NotFound."""


@dataclass(slots=True)
class Forget:
    """This node is not, or no longer, the coordinator."""

    node: int


@dataclass(slots=True)
class Ask:
    """A request to the coordinator: Answered or Unanswered."""

    ticket: int
    node: int
    request: Any
    timeout_ms: int
    lane: str


@dataclass(slots=True)
class Drop:
    """Nobody waits for that answer any more."""

    ticket: int


@dataclass(slots=True)
class Want:
    """Keep informed of these topics; None: of all."""

    topics: frozenset[str] | None


@dataclass(slots=True)
class Learn:
    """Read metadata now: Learned."""

    ticket: int


@dataclass(slots=True)
class Run:
    """Run a hook: HookDone."""

    ticket: int
    hook: Hook


@dataclass(slots=True)
class Arm:
    """Set (or move) the timer of that key: Rang at that time."""

    key: str
    at_ms: int


@dataclass(slots=True)
class Disarm:
    key: str


@dataclass(slots=True)
class Wake:
    """`poll` has something to do."""


@dataclass(slots=True)
class Fail:
    """`poll` is to raise this, the one that waits or the next one."""

    error: BaseException


@dataclass(slots=True)
class Note:
    """A line of the log: Kafka's own terms in `event`, the rest as fields (R27). `level` is logging's name for it."""

    level: str
    event: str
    fields: dict[str, object] = field(default_factory=dict)


Effect = Find | Forget | Ask | Drop | Want | Learn | Run | Arm | Disarm | Wake | Fail | Note
