"""Who waits for memory, and in which order they are let in."""

from __future__ import annotations

import asyncio
import time

import pytest

from rota.client.errors import IllegalUse
from rota.client.producer.memory import Memory


class Room:
    """So many bytes are free. What was taken, in order."""

    def __init__(self) -> None:
        self.free, self.taken, self.changes = 0, [], 0
        self.memory = Memory(lambda size: size <= self.free, self.changed)

    def changed(self) -> None:
        self.changes += 1

    def enter(self, name: str, size: int, seconds: float = 5) -> asyncio.Task:
        def take() -> str:
            self.free -= size
            self.taken.append(name)
            return name

        return asyncio.get_running_loop().create_task(self.memory.enter(size, take, seconds))

    def give(self, size: int) -> None:
        self.free += size
        self.memory.freed()


async def test_waiters_are_served_in_order_even_if_a_later_one_fits() -> None:
    room = Room()
    large, small = room.enter("large", 10), room.enter("small", 1)
    await asyncio.sleep(0)
    room.give(5)
    assert room.taken == []
    room.give(5)
    assert room.taken == ["large"]
    room.give(1)
    assert (await large, await small) == ("large", "small")
    assert not room.memory.waits
    assert room.changes == 2


async def test_a_cancelled_waiter_takes_no_memory_and_unblocks_the_next() -> None:
    room = Room()
    large, small = room.enter("large", 10), room.enter("small", 1)
    await asyncio.sleep(0)
    room.give(1)
    large.cancel()
    assert await small == "small"
    assert room.taken == ["small"]
    assert large.cancelled()
    assert not room.memory.waits


async def test_a_timed_out_waiter_takes_no_memory() -> None:
    room = Room()
    with pytest.raises(TimeoutError):
        await room.enter("late", 1, seconds=0)
    room.give(1)
    assert room.taken == []


async def test_a_waiter_served_in_the_tick_of_its_timeout_succeeds() -> None:
    room = Room()
    entering = room.enter("x", 1, seconds=0.02)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.005, room.give, 1)
    time.sleep(0.04)  # noqa: ASYNC251  # the loop stands still until both are due
    assert await entering == "x"


async def test_an_exception_of_one_waiter_does_not_affect_the_next() -> None:
    room = Room()

    def refuse() -> str:
        raise IllegalUse("no such partition")

    bad = asyncio.get_running_loop().create_task(room.memory.enter(1, refuse, 5))
    good = room.enter("good", 1)
    await asyncio.sleep(0)
    room.give(2)
    with pytest.raises(IllegalUse):
        await bad
    assert await good == "good"


async def test_ending_the_pool_fails_all_waiters() -> None:
    room = Room()
    waiting = room.enter("x", 1)
    await asyncio.sleep(0)
    room.memory.end(IllegalUse("closed"))
    with pytest.raises(IllegalUse):
        await waiting
    assert not room.memory.waits
