"""A world of clients that copy a topic exactly once: `read_process_write`, in groups of either protocol.

As `epoch_world`, with copiers for readers. Each place has a transactional id: a copier that comes fences the one before
it. An auditor reads what is committed, on connections of its own that nothing breaks.

Law
    EO1 Each record that was acknowledged is copied once, whatever becomes of copiers, coordinators and answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from tests.chaos.line import Line
from tests.chaos.requests import create_topic
from tests.simulation.client_actors import POLL_MS, QUICK, of_member
from tests.simulation.client_world import LogLine
from tests.simulation.epoch_world import EpochWorld
from tests.simulation.loop import SimLoop

from rota.client.config import ConsumerConfig, ProducerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.errors import BrokerError, CommitOutcomeUnknown, TimedOut, TransactionFailed, Unreachable
from rota.client.producer.producer import Producer
from rota.client.read_process_write import Records, read_process_write
from rota.client.types import TopicPartition
from rota.protocol.errors import ErrorCode

COPIES = "copies"
TRANSACTION_MS = 5_000
LIVES_S = (5.0, 20.0, 60.0)
CLOSES_FIRST = 0.7  # of the lives


class Copier:
    """One member after the other of a place, each with the transactional id of the place."""

    def __init__(self, world: CopyWorld, name: str, random: Random) -> None:
        self.world, self.name, self.random = world, name, random
        self.consumer: Consumer | None = None
        self.producer: Producer | None = None
        self.instance: str | None = None
        self.place = ""

    async def act(self) -> None:
        """One life."""
        consumer, producer = await self._started()
        if consumer is None or producer is None:
            await self.close()
            return
        consumer.subscribe([self.world.topic])
        copying = asyncio.ensure_future(self._copy(consumer, producer))
        try:
            ends_at = self.world.loop.time() + self.random.choice(LIVES_S)
            while not copying.done() and not self.world.is_read:
                if self.world.loop.time() > ends_at and not self.world.is_over:
                    break
                await asyncio.wait({copying}, timeout=0.5)
        finally:
            if self.world.closes_first and self.random.random() < CLOSES_FIRST:
                await consumer.close(timeout_ms=self.random.choice((0, 5_000)))
                await asyncio.wait({copying}, timeout=30)
            copying.cancel()
            await asyncio.wait({copying})
        await self.close()

    async def _started(self) -> tuple[Consumer | None, Producer | None]:
        try:
            self.consumer = await Consumer(self._consumer_config).start()
            self.producer = await Producer(self._producer_config).start()
        except (Unreachable, TimedOut, TransactionFailed) as why:
            self.world.log_line(f"{self.name} does not start: {why}")
            return None, None
        return self.consumer, self.producer

    @property
    def _consumer_config(self) -> ConsumerConfig:
        return ConsumerConfig(
            enable_auto_commit=False,
            isolation_level="read_committed",
            max_poll_records=self.random.choice((1, 10, 500)),
            fetch_max_wait_ms=50,
            **self.world.protocol(self.random),
            **of_member(self),
        )

    @property
    def _producer_config(self) -> ProducerConfig:
        return ProducerConfig(
            bootstrap_servers=self.world.bootstrap,
            client_id=self.name,
            transactional_id=self.place,
            transaction_timeout_ms=TRANSACTION_MS,
            linger_ms=self.random.choice((0, 5)),
            delivery_timeout_ms=10_000,
            max_block_ms=5_000,
            **QUICK,
        )

    async def _copy(self, consumer: Consumer, producer: Producer) -> None:
        async def process(records: Records) -> None:
            for partition, found in records.items():
                for record in found:
                    await producer.send(COPIES, f"{partition.partition}@{record.offset}".encode())
            if self.random.random() < 0.1:
                await asyncio.sleep(self.random.choice((0.1, 1.0, TRANSACTION_MS / 1000 + 2, POLL_MS / 1000 + 3)))

        try:
            await read_process_write(consumer, producer, process)
        except TransactionFailed as why:  # fenced: by the next of this place, or by the timeout of a transaction
            self.world.log_line(f"{self.name}: {why}")
        except BrokerError as why:
            if why.code is not ErrorCode.UNRELEASED_INSTANCE_ID:
                raise
        finally:
            self.world.log_line(f"{self.name} copies no more")

    async def close(self) -> None:
        if self.producer is not None:
            with suppress(TransactionFailed, TimedOut, CommitOutcomeUnknown):
                await self.producer.close(timeout_ms=500)
        if self.consumer is not None:
            await self.consumer.close()


class CopyWorld(EpochWorld):
    """`play(seed, kind=CopyWorld)`."""

    member_kind: Callable[[Any, str, Random], Any] = Copier
    passing = {
        **EpochWorld.passing,
        25: (51, 14, 15, 16),  # AddOffsetsToTxn
        26: (51, 14, 15, 16),  # EndTxn
    }

    def __init__(self, loop: SimLoop, seed: int, log_line: LogLine) -> None:
        super().__init__(loop, seed, log_line)
        self.auditing: asyncio.Task[None]
        self.copied: set[tuple[TopicPartition, int]] = set()
        self.closes_first = seed % 4 == 1  # copiers may end by the close of their consumer, also while they process

    async def _make_topic(self, address: str) -> None:
        await super()._make_topic(address)
        line = await Line.open(address)
        await create_topic(line, COPIES, 1)
        await line.close()
        self.auditing = self.begin(self._audit, "auditor")

    async def _within(self, seconds: float, work: asyncio.Future[Any], left: Callable[[], str]) -> None:
        await super()._within(seconds, asyncio.gather(work, self.auditing), left)

    async def _audit(self) -> None:
        """EO1. Until all that was acknowledged is copied."""
        config = ConsumerConfig(
            bootstrap_servers=self.address,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
        )
        async with Consumer(config) as consumer:
            consumer.assign([TopicPartition(COPIES, 0)])
            while not self.is_read:
                for found in (await consumer.getmany(timeout_ms=500)).values():
                    for record in found:
                        self._audited(record.value or b"")

    def _audited(self, value: bytes) -> None:
        index, _, offset = value.decode().partition("@")
        source = TopicPartition(self.topic, int(index)), int(offset)
        assert source not in self.copied, f"{source} is copied twice"
        self.copied.add(source)
        self.history.handed[source[0]].add(source[1])
