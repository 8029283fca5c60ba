from __future__ import annotations

import asyncio

import pytest

from rota.coordinator.metadata.eager_tasks import gather, run_eagerly, start


async def at_once(value: int) -> int:
    return value


async def later(*waits: asyncio.Future[int]) -> int:
    return sum([await wait for wait in waits])


def test_a_coroutine_that_does_not_wait_runs_without_a_loop() -> None:
    delayed_reply = start(at_once(3))
    assert delayed_reply.answered
    assert delayed_reply.value == 3
    assert run_eagerly(at_once(4)) == 4


def test_a_failure_before_the_first_wait_is_raised_to_the_caller() -> None:
    async def fails() -> int:
        raise KeyError("now")

    with pytest.raises(KeyError):
        start(fails())
    with pytest.raises(KeyError):
        run_eagerly(fails())


async def test_a_coroutine_that_waits_continues_as_a_task() -> None:
    loop = asyncio.get_running_loop()
    first, second = loop.create_future(), loop.create_future()
    delayed_reply = start(later(first, second))
    notified: list[int] = []
    delayed_reply.then(notified.append)
    assert not delayed_reply.answered
    first.set_result(1)
    await asyncio.sleep(0)
    second.set_result(2)
    while not delayed_reply.answered:
        await asyncio.sleep(0)
    assert notified == [3]


async def test_a_failure_of_an_awaited_future_is_raised_in_the_coroutine() -> None:
    async def careful(wait: asyncio.Future[int]) -> str:
        try:
            await wait
        except OSError as error:
            return f"caught {error}"
        return "nothing"

    wait = asyncio.get_running_loop().create_future()
    delayed_reply = start(careful(wait))
    wait.set_exception(OSError("disk"))
    while not delayed_reply.answered:
        await asyncio.sleep(0)
    assert delayed_reply.value == "caught disk"


async def test_what_a_cancelled_coroutine_waited_for_is_cancelled() -> None:
    """Nobody would take its failure: the loop logs an exception that was never retrieved."""
    loop = asyncio.get_running_loop()
    wait = loop.create_future()
    before = asyncio.all_tasks()
    start(later(wait))
    (task,) = asyncio.all_tasks() - before
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert wait.cancelled()


async def test_a_bare_turn_of_the_loop_is_a_wait_too() -> None:
    async def breathes() -> int:
        await asyncio.sleep(0)
        return 5

    delayed_reply = start(breathes(), mutes=False)
    assert not delayed_reply.answered
    assert not delayed_reply.mutes
    while not delayed_reply.answered:
        await asyncio.sleep(0)
    assert delayed_reply.value == 5


async def test_run_eagerly_refuses_a_coroutine_that_waits() -> None:
    wait = asyncio.get_running_loop().create_future()
    with pytest.raises(RuntimeError, match="had to wait"):
        run_eagerly(later(wait))


async def test_a_mistake_after_the_wait_is_the_reply() -> None:
    async def careless(wait: asyncio.Future[int]) -> int:
        return 1 // await wait

    wait = asyncio.get_running_loop().create_future()
    delayed_reply = start(careless(wait))
    wait.set_result(0)
    while not delayed_reply.answered:
        await asyncio.sleep(0)
    assert isinstance(delayed_reply.value, ZeroDivisionError)


async def test_gathered_coroutines_start_in_order_and_wait_together() -> None:
    waits, started = [asyncio.get_running_loop().create_future() for _ in range(3)], list[int]()

    async def begun(number: int) -> int:
        started.append(number)
        return await waits[number] if number % 2 else number

    gathering = asyncio.ensure_future(gather(begun(number) for number in (0, 1, 2)))
    await asyncio.sleep(0)
    assert started == [0, 1, 2]
    waits[1].set_result(10)
    assert await gathering == [0, 10, 2]


def test_gather_needs_no_loop_when_no_coroutine_waits() -> None:
    assert run_eagerly(gather(at_once(number) for number in (1, 2))) == [1, 2]


async def test_a_gathered_coroutine_that_fails_later_raises_for_all() -> None:
    async def fails(wait: asyncio.Future[int]) -> int:
        await wait
        raise KeyError("later")

    wait: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    gathering = asyncio.ensure_future(gather([at_once(1), fails(wait)]))
    await asyncio.sleep(0)
    wait.set_result(1)
    with pytest.raises(KeyError, match="later"):
        await gathering
