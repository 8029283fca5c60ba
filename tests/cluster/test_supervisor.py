"""`rota serve --brokers N` as processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from rota.client import Admin, AdminConfig, Consumer, ConsumerConfig, NewTopic, Producer, ProducerConfig
from rota.coordinator.admin.check import NotHealthy, check

PATIENCE_S = 30.0
POLL_S = 0.05


class Supervised:
    """Two brokers on one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.brokers: list[str] = []

    async def start(self, listen: str = "127.0.0.1:0") -> None:
        """Returns when the brokers are ready, or the process has ended."""
        with os.fdopen(self._spawn(listen)) as ready:
            line = await asyncio.wait_for(asyncio.to_thread(ready.readline), PATIENCE_S)
        self.brokers = line.strip().split(",")

    async def until_each_knows_both(self) -> None:
        """A broker hears of another's registration a moment after it."""
        async with asyncio.timeout(PATIENCE_S):
            for address in self.brokers:
                async with Admin(AdminConfig(bootstrap_servers=address)) as admin:
                    while len((await admin.describe_cluster()).nodes) < 2:
                        await asyncio.sleep(POLL_S)

    async def refusal(self, listen: str) -> int:
        """The exit code of a start that fails; a start that does not is stopped."""
        await self.start(listen)
        return await self.stop() if self.brokers != [""] else await self.ended()

    async def ended(self) -> int:
        assert self.process is not None
        return await asyncio.to_thread(self.process.wait, PATIENCE_S)

    def _spawn(self, listen: str) -> int:
        reads, writes = os.pipe()
        command = [sys.executable, "-m", "rota.coordinator", "serve", "--brokers", "2", "--data", str(self.folder)]
        command += ["--listen", listen, "--preset", "dev", "--set", "offsets.topic.num.partitions=4"]
        command += ["--ready-fd", str(writes)]
        with self.folder.with_suffix(".log").open("ab") as log:
            self.process = subprocess.Popen(command, pass_fds=[writes], stdout=log, stderr=log)
        os.close(writes)
        return reads

    @property
    def bootstrap(self) -> str:
        return ",".join(self.brokers)

    @property
    def workers(self) -> list[int]:
        """The process ids of the brokers."""
        assert self.process is not None
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return await self.ended()


@pytest.fixture
async def supervised(tmp_path: Path) -> AsyncIterator[Supervised]:
    supervised = Supervised(tmp_path / "data")
    await supervised.start()
    yield supervised
    if supervised.process is not None and supervised.process.poll() is None:
        await supervised.stop()


async def until(condition: Callable[[], bool], what: str) -> None:
    """Poll other processes."""
    for _ in range(int(PATIENCE_S / POLL_S)):
        if condition():
            return
        await asyncio.sleep(POLL_S)
    raise AssertionError(f"it did not come to this: {what}")


def answers(address: str) -> bool:
    try:
        return check(address) > 0
    except NotHealthy:
        return False


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and ") Z " not in Path(f"/proc/{pid}/stat").read_text()


async def produce(bootstrap: str, first: int, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S), Producer(ProducerConfig(bootstrap_servers=bootstrap)) as producer:
        for number in range(first, first + count):
            await producer.send("t", b"%d" % number, partition=number % 4)


async def consume(bootstrap: str, count: int) -> list[int]:
    config = ConsumerConfig(bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest")
    values: list[int] = []
    async with asyncio.timeout(PATIENCE_S), Consumer(config) as consumer:
        consumer.subscribe(["t"])
        async for record in consumer:
            values.append(int(record.value or b""))
            if len(values) == count:
                await consumer.commit()
                break
    return sorted(values)


async def test_brokers_share_topics_and_one_that_is_killed_is_started_again(supervised: Supervised) -> None:
    """Law SV1."""
    await supervised.until_each_knows_both()
    async with Admin(AdminConfig(bootstrap_servers=supervised.bootstrap)) as admin:
        await admin.create_topics([NewTopic("t", 4, 2)])
    await produce(supervised.bootstrap, 0, 100)
    before = supervised.workers
    assert len(before) == 2
    os.kill(before[0], signal.SIGKILL)
    await produce(supervised.bootstrap, 100, 100)
    assert await consume(supervised.bootstrap, 200) == list(range(200))
    await until(lambda: len(set(supervised.workers) - set(before)) == 1, "another process in its place")
    await until(lambda: all(map(answers, supervised.brokers)), "both brokers answer at their addresses")


async def test_after_an_orderly_stop_the_next_start_has_all_data(supervised: Supervised) -> None:
    """Law SV1."""
    async with Admin(AdminConfig(bootstrap_servers=supervised.bootstrap)) as admin:
        await admin.create_topics([NewTopic("t", 4, 1)])
    await produce(supervised.bootstrap, 0, 50)
    assert await supervised.stop(signal.SIGINT) == 0
    await supervised.start()
    await produce(supervised.bootstrap, 50, 50)
    assert await consume(supervised.bootstrap, 100) == list(range(100))
    assert await supervised.stop() == 0


async def test_brokers_stop_when_their_supervisor_dies(supervised: Supervised) -> None:
    """Law SV2: none goes on with a store that nobody serves, at an address that the next start needs."""
    workers = supervised.workers
    await supervised.stop(signal.SIGKILL)
    await until(lambda: not any(map(is_alive, workers)), "the brokers end")
    await supervised.start()
    assert all(map(answers, supervised.brokers))


async def test_a_folder_in_use_and_an_address_in_use_are_refused(supervised: Supervised, tmp_path: Path) -> None:
    assert await Supervised(supervised.folder).refusal("127.0.0.1:0") == 2
    assert await Supervised(tmp_path / "other").refusal(supervised.brokers[0]) == 2
    assert all(map(answers, supervised.brokers))
