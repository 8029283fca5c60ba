"""One poll-like call at a time: what it does to be cancelled, to be called twice, and to end with the consumer."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.consumer.bookkeeper import Bookkeeper, Group, consuming
from tests.unit.client.consumer.kit import P0, TOPIC, batch
from tests.unit.client.network.scripted import eventually

from rota.client.consumer.consumer import Consumer
from rota.client.errors import IllegalUse

TEN_S = 10


def feed() -> Bookkeeper:
    keeper = Bookkeeper(2)
    keeper.write(0, batch(0, 10))
    return keeper


async def first(consumer: Consumer) -> int:
    return (await asyncio.wait_for(consumer.getone(), TEN_S)).offset


async def test_a_second_call_is_refused_while_one_waits() -> None:
    async with consuming(Bookkeeper(1)) as consumer:
        consumer.assign(P0)
        waiting = asyncio.create_task(consumer.getone(), name="the reader")
        await asyncio.sleep(0)
        with pytest.raises(IllegalUse, match="the reader"):
            await consumer.getmany()
        waiting.cancel()
        await asyncio.wait({waiting})
        assert await consumer.getmany() == {}


async def test_a_change_of_positions_wakes_a_waiting_call() -> None:
    async with consuming(feed()) as consumer:
        consumer.assign(P0)
        consumer.pause()
        waiting = asyncio.create_task(consumer.getone())
        await asyncio.sleep(0)
        consumer.resume()
        assert (await asyncio.wait_for(waiting, TEN_S)).offset == 0


async def test_a_call_that_is_cancelled_takes_nothing() -> None:
    keeper = feed()
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        seen: list[int] = []
        for position_epochs in range(400):
            call = asyncio.create_task(consumer.getmany(1, timeout_ms=1_000))
            for _ in range(position_epochs % 23):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
            if not call.cancelled():
                seen += [item.offset for item in call.result()[P0]]
            if len(seen) == 10:
                break
        while len(seen) < 10:
            seen.append(await first(consumer))
        assert seen == list(range(10))


async def test_a_reader_waits_while_another_task_closes_the_consumer() -> None:
    keeper, calls = feed(), 0
    keeper.open.clear()
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        await first(consumer)
        closing = asyncio.create_task(consumer.close())
        await eventually(lambda: keeper.commits)

        async def reads() -> None:
            nonlocal calls
            while True:
                calls += 1
                assert await consumer.getmany(timeout_ms=60_000) == {}

        reading = asyncio.create_task(reads())
        for _ in range(100):
            await asyncio.sleep(0)
        assert calls == 1
        keeper.open.set()
        await closing
        with pytest.raises(IllegalUse, match="closed"):
            await asyncio.wait_for(reading, TEN_S)


async def test_a_call_that_begins_while_the_consumer_closes_ends_with_its_time() -> None:
    keeper = feed()
    keeper.open.clear()
    async with consuming(keeper) as consumer:
        consumer.assign(P0)
        await first(consumer)
        closing = asyncio.create_task(consumer.close())
        await eventually(lambda: keeper.commits)
        assert await consumer.getmany(timeout_ms=1) == {}
        assert consumer.state != "CLOSED"
        keeper.open.set()
        await closing


async def test_close_is_not_held_up_by_a_callback_that_a_call_waits_for() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def hangs(_: object) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with consuming(Group()) as consumer:
        consumer.subscribe([TOPIC], on_assigned=hangs)
        waiting = asyncio.create_task(consumer.getmany(timeout_ms=60_000))
        await asyncio.wait_for(began.wait(), TEN_S)
        await asyncio.wait_for(consumer.close(timeout_ms=50), TEN_S)
        assert ended.is_set()
        assert await asyncio.wait_for(waiting, TEN_S) == {}


async def test_the_time_of_a_call_passes_while_its_callback_runs_and_the_call_ends_with_it() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def works(_: object) -> None:
        began.set()
        await go_on.wait()

    async with consuming(Group()) as consumer:
        consumer.subscribe([TOPIC], on_assigned=works)
        waiting = asyncio.create_task(consumer.getmany(timeout_ms=1))
        while not began.is_set():
            if waiting.done():
                waiting = asyncio.create_task(consumer.getmany(timeout_ms=1))
            await asyncio.sleep(0)
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done
        go_on.set()
        assert await asyncio.wait_for(waiting, TEN_S) == {}
