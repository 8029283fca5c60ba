"""The timeout of a request that changes the metadata: changes that are not complete by then get REQUEST_TIMED_OUT.

Laws
    T10 The response is sent by the timeout of the request, however slow the store is. The changes continue and succeed
        or fail without a response; a failure is logged.
    T14 A request whose timeout is 0 or less changes nothing: all that it names gets REQUEST_TIMED_OUT, without a text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, Final, TypeVar

import structlog

from rota.coordinator.api.node import Node
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.store import OutcomeUnknown, StoreFailed
from rota.coordinator.metadata.topic import Refusal
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode

log = structlog.get_logger("rota.api")

TIMED_OUT: Final = Refusal(ErrorCode.REQUEST_TIMED_OUT, "The request timed out. The change may still be made.")

T = TypeVar("T")


def is_over(timeout_ms: int) -> bool:
    """The time of the request has run out when it comes, so that nothing of it is done."""
    return timeout_ms <= 0


async def gather_within(
    node: Node, timeout_ms: int, changes: Iterable[Coroutine[Any, Any, T | Refusal]]
) -> list[T | Refusal]:
    """Start all changes; return their results in order. The result of a change that takes longer is TIMED_OUT.

    A change that ends in StoreFailed has a Refusal as its result.
    """
    replies = [eager_tasks.start(refuse_failure(change)) for change in changes]
    waiting = [reply for reply in replies if not reply.answered]
    if waiting:
        await _wait(node, timeout_ms, waiting)
    return [_result(reply) for reply in replies]


async def refuse_failure(change: Awaitable[T | Refusal]) -> T | Refusal:
    """Return the result of a change; a failure of the store is a Refusal. Its text says what failed."""
    try:
        return await change
    except OutcomeUnknown as failure:
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, str(failure))
    except StoreFailed as failure:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure))


async def _wait(node: Node, timeout_ms: int, replies: list[DelayedReply[T | Refusal]]) -> None:
    """Wait until all replies are answered, at most `timeout_ms`."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer_key, left = object(), len(replies)

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    def answered(result: T | Refusal) -> None:
        nonlocal left
        left -= 1
        if ended.done() and isinstance(result, Exception):
            log.error("Change failed after its request was answered", exc_info=result)
        elif ended.done() and isinstance(result, Refusal):
            log.warning("Change failed after its request was answered", reason=result.message)
        elif not left:
            end()

    for reply in replies:
        reply.then(answered)
    node.timers.at(timer_key, node.now_ms() + max(timeout_ms, 0), end)
    try:
        await ended
    finally:
        node.timers.cancel(timer_key)


def _result(reply: DelayedReply[T | Refusal]) -> T | Refusal:
    if not reply.answered:
        return TIMED_OUT
    result = reply.result()
    assert result is not None
    return result
