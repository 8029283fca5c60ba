"""The events of a member. Their time is the argument `now_ms` of `step`."""

from __future__ import annotations

import re
from typing import Any

from rota.client.errors import KafkaError
from rota.client.network.metadata import Metadata
from rota.protocol.dataclass import dataclass


@dataclass(slots=True)
class Subscribed:
    """The user chose topics, by name or by pattern."""

    topics: frozenset[str] | re.Pattern[str]


@dataclass(slots=True)
class MetadataChanged:
    """The metadata of the cluster changed."""

    metadata: Metadata


@dataclass(slots=True)
class MetadataRefreshed:
    """A `RefreshMetadata` ended, with success or not: the metadata that are known now."""

    ticket: int
    metadata: Metadata


@dataclass(slots=True)
class PollBegan:
    """`poll` begins: hooks may run."""


@dataclass(slots=True)
class PollEnded:
    """`poll` ended: no further hook may begin."""


@dataclass(slots=True)
class PollReturned:
    """The user has control again: max.poll.interval.ms counts from here."""


@dataclass(slots=True)
class CoordinatorFound:
    """The search for the coordinator ended: it is this node."""

    node: int


@dataclass(slots=True)
class CoordinatorNotFound:
    """No coordinator was found; `error.retriable` (or a BrokerError's code) says whether a retry may succeed."""

    error: KafkaError


@dataclass(slots=True)
class ResponseReceived:
    """The response to a `SendRequest`: a JoinGroup-, SyncGroup-, Heartbeat- or LeaveGroupResponse."""

    ticket: int
    response: Any


@dataclass(slots=True)
class RequestFailed:
    """A `SendRequest` without a response: connection lost, timeout, cancelled, or a version that the broker lacks."""

    ticket: int
    error: KafkaError


@dataclass(slots=True)
class HookDone:
    """A `RunHook` ended; `error` is the exception of the user's callback."""

    ticket: int
    error: BaseException | None = None


@dataclass(slots=True)
class TimerExpired:
    """The time of an armed timer has come."""

    key: str


@dataclass(slots=True)
class CommitRefused:
    """A commit was refused with this code; `generation` is the one that it carried, None: the current one."""

    code: int
    generation: int | None = None


@dataclass(slots=True)
class Rejoin:
    """The user requests a rebalance; `reason` is for the coordinator's log."""

    reason: str


@dataclass(slots=True)
class Close:
    """Leave; `reason` is for the coordinator's log."""

    reason: str


@dataclass(slots=True)
class CloseTimedOut:
    """The time to close has passed: no further hooks. The second time: do not wait for LeaveGroup's response either."""


Event = (
    Subscribed
    | MetadataChanged
    | MetadataRefreshed
    | PollBegan
    | PollEnded
    | PollReturned
    | CoordinatorFound
    | CoordinatorNotFound
    | ResponseReceived
    | RequestFailed
    | HookDone
    | TimerExpired
    | CommitRefused
    | Rejoin
    | Close
    | CloseTimedOut
)
