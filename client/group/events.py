"""What comes into a membership. Times come beside the event, as `now_ms`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rota.client.errors import KafkaError
from rota.client.network.metadata import Metadata


@dataclass(slots=True)
class Subscribed:
    """The user chose topics, by name or by pattern."""

    topics: frozenset[str] | re.Pattern[str]


@dataclass(slots=True)
class Known:
    """What is known of the cluster has changed."""

    metadata: Metadata


@dataclass(slots=True)
class Learned:
    """A `Learn` is done, well or not: this is what is known now."""

    ticket: int
    metadata: Metadata


@dataclass(slots=True)
class Polled:
    """`poll` begins: the user lives, and hooks may run."""


@dataclass(slots=True)
class PollEnded:
    """`poll` is over, whatever ended it: no further hook may begin."""


@dataclass(slots=True)
class Returning:
    """The user has control: max.poll.interval.ms counts from here."""


@dataclass(slots=True)
class Found:
    """The coordinator."""

    node: int


@dataclass(slots=True)
class NotFound:
    """No coordinator; `error.retriable` (or a BrokerError's code) says whether looking again may help."""

    error: KafkaError


@dataclass(slots=True)
class Answered:
    """The answer to an `Ask`: a JoinGroup-, SyncGroup-, Heartbeat- or LeaveGroupResponse."""

    ticket: int
    response: Any


@dataclass(slots=True)
class Unanswered:
    """An `Ask` that got no answer: the connection broke, time ran out, or the broker knows no such version."""

    ticket: int
    error: KafkaError


@dataclass(slots=True)
class HookDone:
    """A `Run` has ended; `error` is what the user's callback raised."""

    ticket: int
    error: BaseException | None = None


@dataclass(slots=True)
class Rang:
    """An armed timer went off."""

    key: str


@dataclass(slots=True)
class Stale:
    """A commit was refused with this code; `generation` is the one that it carried, None: the current one."""

    code: int
    generation: int | None = None


@dataclass(slots=True)
class Rejoin:
    """The user wants the group to assign anew; `reason` is for the coordinator's log."""

    reason: str


@dataclass(slots=True)
class Close:
    """Leave; `reason` is for the coordinator's log."""

    reason: str


@dataclass(slots=True)
class Hurry:
    """The time to close is over: no further hooks; said again, no more waiting for LeaveGroup's answer either."""


Event = (
    Subscribed
    | Known
    | Learned
    | Polled
    | PollEnded
    | Returning
    | Found
    | NotFound
    | Answered
    | Unanswered
    | HookDone
    | Rang
    | Stale
    | Rejoin
    | Close
    | Hurry
)
