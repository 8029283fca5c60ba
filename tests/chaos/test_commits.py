"""kill -9 in a stream of commits: what was acknowledged is there, and what is there was really sent. O1, O2."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.chaos.daemon import Daemon
from tests.chaos.line import Line
from tests.chaos.requests import commit, committed, create_topic
from tests.simulation.history import Op
from tests.simulation.member import Trace

from rota.protocol.errors import ErrorCode

LINES = 3
PIPELINED = 40


class Writer:
    """Commits 1, 2, 3, … to a partition of its own, many at a time."""

    def __init__(self, group: str, partition: int) -> None:
        self.group, self.partition = group, partition
        self.sent = self.acknowledged = 0

    async def stream(self, line: Line) -> None:
        """Until the connection breaks."""
        under_way = [self._send(line) for _ in range(PIPELINED)]
        while under_way:
            offset, answer = under_way.pop(0)
            response = await answer
            if response is not None:
                assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
                self.acknowledged = offset
                under_way.append(self._send(line))

    def _send(self, line: Line) -> tuple[int, Any]:
        self.sent += 1
        return self.sent, line.send(commit(self.group, self.partition, self.sent, f"at {self.sent}"), 8)

    async def check(self, line: Line) -> None:
        """What survived is taken from here on for what was acknowledged."""
        offset, metadata = await committed(line, self.group, self.partition)
        assert self.acknowledged <= offset <= self.sent
        assert metadata == f"at {offset}"
        self.acknowledged = offset


async def until(writers: list[Writer], acknowledged: int) -> None:
    while sum(writer.acknowledged for writer in writers) < acknowledged:
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("flush", [None, "1"], ids=["page-cache", "flushed"])
async def test_acknowledged_commits_survive(seed: int, flush: str | None, tmp_path: Path) -> None:
    random = Random(seed)
    settings = {} if flush is None else {"log_flush_interval_messages": flush}
    writers = [Writer(f"g{at % 2}", at) for at in range(LINES)]
    async with Daemon(tmp_path / "data", **settings) as daemon:
        await create_topic(await daemon.line(), partitions=4)
        for _ in range(3):
            lines = [await daemon.line() for _ in writers]
            begun = sum(writer.acknowledged for writer in writers)
            async with asyncio.TaskGroup() as tasks:
                for writer, line in zip(writers, lines, strict=True):
                    tasks.create_task(writer.stream(line))
                await until(writers, begun + random.randrange(1, 500))
                await asyncio.sleep(random.random() / 100)
                await daemon.crash()
            line = await daemon.line()
            for writer in writers:
                await writer.check(line)
            assert await committed(line, "g0", LINES) == (-1, "")


class Client:
    """Commits to and reads a few offsets that others use as well, and keeps a history."""

    def __init__(self, random: Random, trace: Trace) -> None:
        self.random, self.trace = random, trace

    async def work(self, line: Line) -> None:
        while not line.is_cut:
            partition = self.random.randrange(3)
            if self.random.random() < 0.4:
                await self._read(line, partition)
            else:
                await self._commit(line, partition)
            await asyncio.sleep(self.random.random() / 500)

    async def _commit(self, line: Line, partition: int) -> None:
        op = self.trace.began("commit", "g", partition, next(self.trace.offsets), time.monotonic())
        answer = await line.send(commit("g", partition, op.offset), 8)
        if answer is not None:
            assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
            op.done = time.monotonic()

    async def _read(self, line: Line, partition: int) -> None:
        op = Op("fetch", -1, time.monotonic())
        try:
            op.offset, _ = await committed(line, "g", partition)
        except ConnectionError:
            return
        op.done = time.monotonic()
        self.trace.ops["g", partition].append(op)


async def test_fetches_linearise_with_commits_across_crashes(seed: int, tmp_path: Path) -> None:
    random, trace = Random(seed), Trace()
    clients = [Client(Random(f"{seed}-{at}"), trace) for at in range(LINES)]
    async with Daemon(tmp_path / "data") as daemon:
        await create_topic(await daemon.line(), partitions=4)
        for _ in range(3):
            lines = [await daemon.line() for _ in clients]
            async with asyncio.TaskGroup() as tasks:
                for client, line in zip(clients, lines, strict=True):
                    tasks.create_task(client.work(line))
                await asyncio.sleep(0.02 + random.random() / 10)
                await daemon.crash()
        line = await daemon.line()
        for partition in range(3):
            await clients[0]._read(line, partition)
    assert len(trace.ops) == 3
    trace.check()


async def test_commits_survive_compaction_and_crashes(seed: int, tmp_path: Path) -> None:
    """Killed while the offsets topic is compacted, or shortly before, or after."""
    random, note = Random(seed), "n" * 3_000
    last: dict[int, int] = {}
    async with Daemon(tmp_path / "data", offsets_topic_num_partitions="1", offsets_topic_segment_bytes="1") as daemon:
        await create_topic(await daemon.line(), partitions=4)
        for life in range(2):
            line = await daemon.line()
            for begin in range(life * 10_000 + 1, life * 10_000 + 800, 100):
                answers = {at: line.send(commit("g", at % 4, at, note), 8) for at in range(begin, begin + 100)}
                for at, answer in answers.items():
                    assert (await answer).topics[0].partitions[0].error_code == ErrorCode.NONE
                    last[at % 4] = at
            await asyncio.sleep(random.random() * 1.5)  # upkeep looks every second
            await daemon.crash()
            line = await daemon.line()
            for partition, offset in last.items():
                assert await committed(line, "g", partition) == (offset, note)
