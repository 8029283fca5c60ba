"""A cancellation of one who waits leaves what he waits for alone; an error that nobody waits for is silent (PF2)."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from rota.transport.shielded import shielded


async def waiting(future: asyncio.Future[int]) -> asyncio.Task[int]:
    task = asyncio.ensure_future(shielded(future))
    await asyncio.sleep(0)
    return task


async def test_it_is_the_result_or_the_error_of_the_future() -> None:
    first, second, third = (asyncio.get_running_loop().create_future() for _ in range(3))
    tasks = [await waiting(future) for future in (first, second, third)]
    first.set_result(1)
    second.set_exception(ValueError("two"))
    third.cancel()
    assert await tasks[0] == 1
    with pytest.raises(ValueError, match="two"):
        await tasks[1]
    with pytest.raises(asyncio.CancelledError):
        await tasks[2]


def test_a_future_that_is_done_costs_no_turn_of_the_loop() -> None:
    loop = asyncio.new_event_loop()
    done = loop.create_future()
    done.set_result(1)
    with pytest.raises(StopIteration) as result:
        shielded(done).send(None)
    assert result.value.value == 1
    loop.close()


async def test_pf2_an_error_after_the_cancellation_of_all_who_waited_is_silent() -> None:
    reported: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context))
    future = loop.create_future()
    tasks = [await waiting(future) for _ in range(2)]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert not future.done()
    future.set_exception(ValueError("late"))
    await asyncio.sleep(0)
    del future, tasks, task
    gc.collect()
    await asyncio.sleep(0)
    assert reported == []
