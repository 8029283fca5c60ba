"""The effects of a member: requests, hooks, timers, metadata to follow, lines for the log.

What ends later carries a ticket; the event of its end carries the same one. An event whose ticket the machine does not
wait for any more changes nothing.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from rota.client.types import TopicPartition
from rota.protocol.dataclass import dataclass

Partitions = tuple[TopicPartition, ...]

# ---- hooks


@dataclass(slots=True)
class BeforeRejoin:
    """The place for the automatic commit."""


@dataclass(slots=True)
class Revoke:
    """Still assigned, about to be revoked."""

    partitions: Partitions


@dataclass(slots=True)
class Lose:
    """No longer ours."""

    partitions: Partitions


@dataclass(slots=True)
class Assign:
    """The owned partitions, and the added ones."""

    owned: Partitions
    added: Partitions


@dataclass(slots=True)
class BeforeLeaving:
    """The place for the last commit."""


Hook = BeforeRejoin | Revoke | Lose | Assign | BeforeLeaving


# ---- effects


@dataclass(slots=True)
class FindCoordinator:
    """Look for the coordinator: CoordinatorFound or CoordinatorNotFound."""


@dataclass(slots=True)
class ForgetCoordinator:
    """This node is not, or no longer, the coordinator."""

    node: int


@dataclass(slots=True)
class SendRequest:
    """Send a request to the coordinator: ResponseReceived or RequestFailed."""

    ticket: int
    node: int
    request: Any
    timeout_ms: int
    lane: str


@dataclass(slots=True)
class CancelRequest:
    """Cancel the request, or the metadata refresh, of that ticket."""

    ticket: int


@dataclass(slots=True)
class FollowTopics:
    """Keep the metadata of these topics up to date; None: of all."""

    topics: frozenset[str] | None


@dataclass(slots=True)
class RefreshMetadata:
    """Read metadata now: MetadataRefreshed."""

    ticket: int


@dataclass(slots=True)
class RunHook:
    """Run a hook: HookDone."""

    ticket: int
    hook: Hook


@dataclass(slots=True)
class Arm:
    """Set (or move) the timer of that key: TimerExpired at that time."""

    key: str
    at_ms: int


@dataclass(slots=True)
class Disarm:
    key: str


@dataclass(slots=True)
class Wake:
    """Wake the consumer: `poll` has something to do."""


@dataclass(slots=True)
class RaiseInPoll:
    """`poll` is to raise this, the one that waits or the next one."""

    error: BaseException


@dataclass(slots=True)
class UseClassicProtocol:
    """The coordinator does not take this member in the consumer protocol: go on as a member of the classic one."""


@dataclass(slots=True)
class Note:
    """A line of the log: Kafka's own terms in `event`, the rest as fields (R27). `level` is logging's name for it."""

    level: str
    event: str
    fields: dict[str, object] = field(default_factory=dict)


Effect = (
    FindCoordinator
    | ForgetCoordinator
    | SendRequest
    | CancelRequest
    | FollowTopics
    | RefreshMetadata
    | RunHook
    | Arm
    | Disarm
    | Wake
    | RaiseInPoll
    | UseClassicProtocol
    | Note
)
