"""The events of a consumer group and the bodies of their replies. Times are passed beside an event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from rota.coordinator.consumer_group.member import Owned
from rota.coordinator.runtime.contract import Token
from rota.protocol.dataclass import dataclass
from rota.protocol.errors import ErrorCode


def can_describe_all(topic: str) -> bool:
    """The answer where access control is off."""
    return True


@dataclass(slots=True, kw_only=True)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat. None stands for what has not changed since the last heartbeat."""

    token: Token
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_ms: int | None = None
    topic_names: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: tuple[tuple[bytes, tuple[int, ...]], ...] | None = None  # partitions by topic id
    can_describe: Callable[[str], bool] = field(default=can_describe_all)  # whether the client may see a topic

    @property
    def is_full(self) -> bool:
        """Return whether the member sends all fields, as after a response that it may have missed."""
        has_subscription = self.topic_names is not None or self.regex is not None
        return self.rebalance_ms is not None and has_subscription and self.owned is not None


@dataclass(slots=True, kw_only=True)
class HeartbeatReply:
    """The body of the reply, refusals included. `assignment` is None where it has not changed."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    interval_ms: int = 0
    assignment: Owned | None = None


def refusal(error: ErrorCode, message: str) -> HeartbeatReply:
    return HeartbeatReply(error=error, message=message)
