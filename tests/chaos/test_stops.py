"""SIGTERM under load: whoever was told of success keeps it, and the next start has nothing to repair."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from tests.chaos.daemon import Daemon
from tests.chaos.requests import create_topic
from tests.chaos.test_commits import Writer, until
from tests.chaos.test_records import Producer


async def test_a_graceful_stop_under_load_loses_nothing(seed: int, tmp_path: Path) -> None:
    writers = [Writer("g", 0), Writer("h", 1)]
    producers = [Producer(0, Random(seed)), Producer(1, Random(f"{seed}"))]
    async with Daemon(tmp_path / "data") as daemon:
        await create_topic(await daemon.line())
        for _ in range(2):
            workers = [*writers, *producers]
            lines = [await daemon.line() for _ in workers]
            begun = sum(writer.acknowledged for writer in writers)
            async with asyncio.TaskGroup() as tasks:
                for worker, line in zip(workers, lines, strict=True):
                    tasks.create_task(worker.stream(line))
                await until(writers, begun + Random(seed).randrange(1, 300))
                assert await daemon.stop() == 0
            assert (daemon.data / ".kafka_cleanshutdown").exists()
            await daemon.start()
            line = await daemon.line()
            for worker in workers:
                await worker.check(line)
