"""kill -9 of the broker under Rota's own producer and consumer, which go on by themselves when it is back.

Laws
    What was acknowledged is read; an idempotent producer's records lie there once and in order.
    What was committed is not read again: the next member begins where the group was.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos.daemon import Daemon
from tests.chaos.requests import create_topic, records_of

from rota.client.config import ConsumerConfig, ProducerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.errors import BrokerError, RebalancedError, TimedOut, Unreachable
from rota.client.producer.delivery import Delivery
from rota.client.producer.producer import Producer
from rota.client.types import TopicPartition

PATIENCE_S = 60.0
PARTITIONS = 3
QUICK: dict[str, Any] = {"retry_backoff_max_ms": 100, "reconnect_backoff_max_ms": 100, "metadata_max_age_ms": 5_000}


class Written:
    """Records that are numbered, and what became of them."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.deliveries: list[Delivery] = []
        self.acknowledged = 0

    async def go_on(self) -> None:
        """Until cancelled."""
        while True:
            await self.write()
            await asyncio.sleep(0.001)

    async def write(self) -> None:
        number = len(self.deliveries)
        delivery = await self.producer.send("t", b"%d" % number, partition=number % PARTITIONS)
        delivery.add_done_callback(self._acknowledged)
        self.deliveries.append(delivery)

    def _acknowledged(self, delivery: Delivery) -> None:
        delivery.result()
        self.acknowledged += 1

    async def until(self, acknowledged: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.acknowledged < acknowledged:
                await asyncio.sleep(0.005)


async def crash(daemon: Daemon, written: Written, random: Random) -> None:
    """In mid-stream; returns when the next life has acknowledged something."""
    await written.until(written.acknowledged + random.randrange(50, 150))
    daemon.kill()
    await asyncio.sleep(random.random() / 10)  # some are sent while nobody is there
    await daemon.start()
    await written.until(written.acknowledged + 50)


def producer_of(daemon: Daemon) -> Producer:
    return Producer(ProducerConfig(bootstrap_servers=daemon.address, linger_ms=1, **QUICK))


def consumer_of(daemon: Daemon, **more: Any) -> Consumer:
    fetching = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}
    config = ConsumerConfig(bootstrap_servers=daemon.address, group_id="g", **QUICK | fetching | more)
    return Consumer(config)


async def settled(daemon: Daemon) -> None:
    """A topic; and from now on always at the same address."""
    daemon.port = int(daemon.address.rpartition(":")[2])
    await create_topic(await daemon.line(), partitions=PARTITIONS)


async def test_an_idempotent_producer_writes_once_and_in_order(tmp_path: Path) -> None:
    random = Random(1)
    async with Daemon(tmp_path / "data") as daemon:
        await settled(daemon)
        async with producer_of(daemon) as producer:
            written = Written(producer)
            writing = asyncio.ensure_future(written.go_on())
            for _ in range(2):
                await crash(daemon, written, random)
            writing.cancel()
            await asyncio.wait({writing})
            async with asyncio.timeout(PATIENCE_S):
                await producer.flush()
        line = await daemon.line()
        for partition in range(PARTITIONS):
            log = await records_of(line, partition)
            mine = range(partition, len(written.deliveries), PARTITIONS)
            assert list(log.values()) == [b"%d" % number for number in mine]
            assert [written.deliveries[number].result().offset for number in mine] == list(log)


class Group:
    """Members of one group, one after the other: each is handed what nobody committed before it."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.values: dict[tuple[TopicPartition, int], bytes | None] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.again = 0

    async def read(self, random: Random, count: int) -> None:
        """One member: reads `count` new records, commits now and then, and leaves after a commit has succeeded."""
        first: dict[TopicPartition, int] = {}
        new = 0
        async with consumer_of(self.daemon, enable_auto_commit=False) as consumer:
            consumer.subscribe(["t"])
            async with asyncio.timeout(PATIENCE_S):
                while new < count or not self.committed:
                    for partition, records in (await consumer.getmany(50, 200)).items():
                        for record in records:
                            expected = first.get(partition)
                            assert expected in (None, record.offset), "in order, none left out"
                            if expected is None:
                                assert record.offset == self.committed.get(partition, 0), "where the group was"
                            first[partition] = record.offset + 1
                            new += (partition, record.offset) not in self.values
                            self.values[partition, record.offset] = record.value
                    if new >= count or random.random() < 0.3:
                        await self._commit(consumer, dict(first))

    async def _commit(self, consumer: Consumer, read: dict[TopicPartition, int]) -> None:
        try:
            await consumer.commit(read)
        except (RebalancedError, Unreachable, TimedOut, BrokerError):
            return
        self.committed |= read


async def test_acknowledged_records_and_commits_survive_a_broker_crash(tmp_path: Path) -> None:
    """The consumer lives through the crash; then another one begins where it was."""
    random = Random(1)
    async with Daemon(tmp_path / "data") as daemon:
        await settled(daemon)
        async with producer_of(daemon) as producer:
            written = Written(producer)
            writing = asyncio.ensure_future(written.go_on())
            group = Group(daemon)
            await written.until(20)
            reading = asyncio.ensure_future(group.read(random, 300))
            await crash(daemon, written, random)
            await reading
            writing.cancel()
            await asyncio.wait({writing})
            await producer.flush()
        assert group.committed
        left = sum(1 for item in written.deliveries if not item.result().offset < 0) - len(group.values)
        if left:
            await group.read(random, left)
        read = sorted(int(value or b"") for value in group.values.values())
        assert read == list(range(len(written.deliveries)))


async def test_a_group_that_commits_by_itself_loses_nothing(tmp_path: Path) -> None:
    """Two members with automatic commits, and the broker killed under them."""
    random = Random(1)
    async with Daemon(tmp_path / "data") as daemon:
        await settled(daemon)
        seen: set[bytes] = set()

        async def member() -> None:
            async with consumer_of(daemon, auto_commit_interval_ms=50, heartbeat_interval_ms=200) as consumer:
                consumer.subscribe(["t"])
                while True:
                    for records in (await consumer.getmany(50, 100)).values():
                        seen.update(record.value or b"" for record in records)

        async with producer_of(daemon) as producer:
            written = Written(producer)
            writing = asyncio.ensure_future(written.go_on())
            members = [asyncio.ensure_future(member()) for _ in range(2)]
            await crash(daemon, written, random)
            writing.cancel()
            await asyncio.wait({writing})
            await producer.flush()
            async with asyncio.timeout(PATIENCE_S):
                while len(seen) < len(written.deliveries):
                    await asyncio.wait(members, timeout=0.02)
                    assert not any(item.done() for item in members)
            for item in members:
                item.cancel()
            await asyncio.wait(members)
            assert all(item.cancelled() for item in members)
