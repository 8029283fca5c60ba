"""What is begun is done, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from rota.client.network.shielded_close import run_shielded


async def test_its_failure_is_raised() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await run_shielded(work(), "work")


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancelled_caller_waits_for_the_shielded_work(turns: int) -> None:
    release, done = asyncio.Event(), list[str]()

    async def work() -> None:
        await release.wait()
        done.append("done")

    waiting = asyncio.ensure_future(run_shielded(work(), "work"))
    await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    release.set()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert done == ["done"]


async def test_a_caller_cancelled_twice_leaves_the_work_running() -> None:
    release, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await release.wait()
        ended.set()

    waiting = asyncio.ensure_future(run_shielded(work(), "work"))
    for _ in range(2):
        for _ in range(3):
            await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert not ended.is_set()
    release.set()
    async with asyncio.timeout(5):
        await ended.wait()
