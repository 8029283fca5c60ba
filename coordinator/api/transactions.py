"""What the APIs of transactions share: the code of a fenced producer, and replies of the coordinator as responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode

T = TypeVar("T")
U = TypeVar("U")


def fenced_code(error: ErrorCode, version: int, since: int) -> ErrorCode:
    """Return the error as this version of an API says it: before `since` PRODUCER_FENCED was INVALID_PRODUCER_EPOCH."""
    if error is ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def replied(reply: T | DelayedReply[T], response: Callable[[T], U]) -> U | DelayedReply[U]:
    """Return the response that the reply becomes, now or later."""
    return reply.map(response) if isinstance(reply, DelayedReply) else response(reply)
