"""Run a coroutine as far as it goes now; only one that has to wait becomes a task.

A change of the metadata waits for a journal or for ZooKeeper. In memory it waits for nothing: a topic is then created
inside the request that asks for it, with no extra turn of the loop, and pure tests need no loop at all.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator, Iterable
from typing import Any, TypeVar, cast

from rota.coordinator.scheduling.delayed_reply import DelayedReply

T = TypeVar("T")
_RUNNING: set[asyncio.Task[None]] = set()  # the loop keeps only weak references to tasks


@types.coroutine
def _resume(coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """`await` refuses a coroutine that stopped in the middle; this goes on with it."""
    result: T = yield from coroutine  # allowed inside types.coroutine
    return result


def start(coroutine: Coroutine[Any, Any, T], *, mutes: bool = True) -> DelayedReply[T]:
    """Start a coroutine; return the reply that its result becomes, answered already when it did not have to wait.

    What it raises before its first wait is raised here; what it raises later is the reply, which ends a connection, so
    a coroutine that answers a request turns what it expects into an answer itself.
    """
    delayed_reply: DelayedReply[T] = DelayedReply(mutes=mutes)
    try:
        waits_for: asyncio.Future[Any] | None = coroutine.send(None)
    except StopIteration as done:
        delayed_reply.answer(done.value)
        return delayed_reply

    async def finish() -> None:
        if waits_for is not None:
            waits_for._asyncio_future_blocking = False  # it was meant for the task that did not exist yet
            try:
                await asyncio.wait([waits_for])
            except asyncio.CancelledError:  # as `await waits_for` would: its failure is discarded
                waits_for.cancel()
                coroutine.close()
                raise
        try:
            result = await _resume(coroutine)
        except Exception as mistake:  # noqa: BLE001  # it travels as the reply: who sends it ends that connection
            result = cast(T, mistake)
        delayed_reply.answer(result)

    task = asyncio.get_running_loop().create_task(finish())
    _RUNNING.add(task)
    task.add_done_callback(_RUNNING.discard)
    return delayed_reply


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Start all of them in their order, wait for all, return their results. Raises what the first of them raises."""
    replies = [start(coroutine) for coroutine in coroutines]
    for reply in replies:
        if not reply.answered:
            done = asyncio.get_running_loop().create_future()
            reply.then(lambda _, done=done: done.done() or done.set_result(None))  # type: ignore[misc]
            await done
    return [cast(T, reply.result()) for reply in replies]


async def run_in_slices(work: Iterable[None], per_slice: int) -> None:
    """Iterate `work`, at most `per_slice` steps in one turn of the loop."""
    for count, _ in enumerate(work, 1):
        if count % per_slice == 0:
            await yield_to_loop()


async def yield_to_loop() -> None:
    """Let the loop do its other work; without a running loop, return at once."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    await asyncio.sleep(0)


def run_eagerly(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that must not wait, as those of a store in memory."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    coroutine.close()
    raise RuntimeError("a coroutine had to wait where it must not")
