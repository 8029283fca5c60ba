"""The producers and members of a simulated world of clients.

Each await may be cancelled at any moment: no record may be lost or delivered twice by that.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation.client_history import Written

from rota.client.config import ConsumerConfig, ProducerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.errors import (
    BrokerError,
    BufferFull,
    DeliveryFailed,
    RebalancedError,
    TimedOut,
    Unreachable,
)
from rota.client.producer.producer import Producer
from rota.client.types import ConsumerRecord, TopicPartition
from rota.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.client_world import World

T = TypeVar("T")

QUICK: dict[str, Any] = {
    "request_timeout_ms": 3_000,
    "default_api_timeout_ms": 8_000,
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 500,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 500,
    "socket_connection_setup_timeout_ms": 2_000,
    "metadata_max_age_ms": 10_000,
}
GIVES_UP = 0.15  # of the awaits
SESSION_MS, HEARTBEAT_MS, POLL_MS = 6_000, 1_500, 12_000


async def impatient(
    random: Random, work: Coroutine[Any, Any, T], late: Callable[[T], None] = lambda _: None
) -> T | None:
    """What `work` gives; None when it was given up. `late` is told what it gave after all, when we are cancelled."""
    if random.random() >= GIVES_UP:
        return await work
    task = asyncio.ensure_future(work)
    try:
        for _ in range(random.randrange(4)):
            await asyncio.sleep(random.choice((0, 0, 0.001, 0.01, 0.3)))
        task.cancel()
        return await task
    except asyncio.CancelledError:
        me = asyncio.current_task()
        if me is None or not me.cancelling():
            return None
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is None:
            late(task.result())
        raise


def of_member(member: Any) -> dict[str, Any]:
    """The settings that all members of the group have: with the name and the instance of this one."""
    return {
        "bootstrap_servers": member.world.bootstrap,
        "client_id": member.name,
        "group_id": "g",
        "group_instance_id": member.instance,
        "auto_offset_reset": "earliest",
        "max_poll_interval_ms": POLL_MS,
        **QUICK,
    }


class Writer:
    """One producer. Its records are numbered in the order in which `send` took them."""

    def __init__(self, world: World, name: str, random: Random) -> None:
        self.world, self.random = world, random
        self.written = Written(name, is_idempotent=random.random() < 0.8)
        world.history.writers.append(self.written)
        self.config = ProducerConfig(
            bootstrap_servers=world.bootstrap,
            client_id=name,
            enable_idempotence=self.written.is_idempotent,
            acks="all" if self.written.is_idempotent else random.choice((1, "all")),
            linger_ms=random.choice((0, 5, 100)),
            batch_size=random.choice((200, 1_000, 16_384)),
            buffer_memory=random.choice((20_000, 1_000_000)),
            compression_type=random.choice(("none", "none", "lz4", "gzip")),
            delivery_timeout_ms=random.choice((10_000, 60_000)),
            max_block_ms=5_000,
            max_in_flight_requests_per_connection=random.choice((1, 5)),
            **QUICK,
        )

    async def act(self) -> None:
        """Until the run is over; then everything is delivered or has failed."""
        producer = Producer(self.config)
        while True:
            try:
                await producer.start()
                break
            except (Unreachable, TimedOut):
                await producer.close()
                producer = Producer(self.config)
        while not self.world.is_over:
            await self._write_some(producer)
            await asyncio.sleep(self.random.choice((0.0, 0.05, 0.5, 3.0)))
        with suppress(DeliveryFailed):  # which each record was told too
            await producer.close()

    async def _write_some(self, producer: Producer) -> None:
        for _ in range(self.random.choice((1, 3, 20))):
            await self._write(producer, self.random.choice([None, *self.world.partitions]))
        if self.random.random() < 0.2:
            with suppress(DeliveryFailed):
                await impatient(self.random, producer.flush())

    async def _write(self, producer: Producer, partition: TopicPartition | None) -> None:
        number = self.written.sent
        self.written.sent += 1
        key = self.random.choice((None, b"a", b"b"))
        at = None if partition is None else partition.partition
        try:
            sent = producer.send(self.world.topic, self.written.value(number), key, partition=at)
            delivery = await impatient(self.random, sent)
        except (BufferFull, TimedOut):
            self.written.lost[number] = False
            return
        if delivery is None:
            return  # taken as a whole or not at all; nobody knows which

        def answer(done: Any) -> None:
            try:
                where = done.result()
                assert at in (None, where.partition)
                self.written.acked[number] = TopicPartition(where.topic, where.partition), where.offset
            except DeliveryFailed as why:
                self.written.lost[number] = why.maybe_written

        delivery.add_done_callback(answer)
        if self.random.random() < 0.1:
            with suppress(DeliveryFailed):
                await impatient(self.random, delivery)


class Reader:
    """One member after the other. Each ends in its own way: in order, by a crash, by being forgotten."""

    def __init__(self, world: World, name: str, random: Random) -> None:
        self.world, self.name, self.random = world, name, random
        self.next: dict[TopicPartition, int] = {}  # what the user must be handed next
        self.working: list[ConsumerRecord] = []
        self.consumer: Consumer | None = None
        self.is_closing = False
        self.instance: str | None = None
        self.place = ""

    @property
    def config(self) -> ConsumerConfig:
        return ConsumerConfig(
            max_poll_records=self.random.choice((1, 10, 500)),
            enable_auto_commit=self.random.random() < 0.7,
            auto_commit_interval_ms=self.random.choice((0, 500, 3_000)),
            fetch_max_wait_ms=self.random.choice((50, 500)),
            max_partition_fetch_bytes=self.random.choice((300, 1_048_576)),
            **self.world.protocol(self.random),
            **of_member(self),
        )

    async def act(self) -> None:
        """One life."""
        self.next.clear()
        self.working = []
        consumer = self.consumer = Consumer(self.config)
        try:
            await consumer.start()
        except (Unreachable, TimedOut):
            await consumer.close()
            return
        topics = self.random.choice(([self.world.topic], re.compile(self.world.topic)))
        consumer.subscribe(topics, on_assigned=self._assigned, on_revoked=self._revoked, on_lost=self._removed)
        ends_at = self.world.loop.time() + self.random.choice((5.0, 20.0, 60.0))
        while self.world.loop.time() < ends_at or self.world.is_over:
            if self.world.is_read:
                break
            try:
                await self._work(consumer)
            except BrokerError as why:
                if why.code is not ErrorCode.UNRELEASED_INSTANCE_ID:
                    raise
                break  # the one before has crashed, and its session has not ended; the next one tries again
        await self._close(consumer)

    async def _work(self, consumer: Consumer) -> None:
        how = self.random.random()
        if how < 0.15:
            record = await self._polled(consumer.getone(), self._one, 1.0)
            self._one(record)
        elif how < 0.3:
            await self._one_by_one(consumer)
        else:
            most, wait_ms = self.random.choice((None, 1, 7)), self.random.choice((0, 100, 1_000))
            self._many(await self._polled(consumer.getmany(most, wait_ms), self._many) or {})
        pauses = (0.0, 0.0, 0.05, 1.0, 5.0) if self.random.random() < 0.98 else (POLL_MS / 1000 + 3,)
        await asyncio.sleep(self.random.choice(pauses) if not self.world.is_over else 0.0)
        if self.random.random() < 0.1:
            await self._commit(consumer)
        if self.random.random() < 0.1:
            self._move(consumer)

    async def _one_by_one(self, consumer: Consumer) -> None:
        for _ in range(self.random.choice((1, 5))):
            self._one(await self._polled(consumer.__anext__(), self._one, 1.0))

    def _move(self, consumer: Consumer) -> None:
        """Go back a little, pause, resume."""
        mine = sorted(consumer.assignment & self.next.keys())
        if not mine:
            return
        partition = self.random.choice(mine)
        match self.random.randrange(4):
            case 0:
                self.next[partition] = max(0, self.next[partition] - self.random.randrange(5))
                consumer.seek(partition, self.next[partition])
            case 1:
                consumer.pause(partition)
            case _:
                consumer.resume()
        if self.world.is_over:
            consumer.resume()

    async def _polled(
        self, call: Coroutine[Any, Any, T], late: Callable[[T], None], seconds: float | None = None
    ) -> T | None:
        """A poll-like call: whoever calls is done with what it has. A call that gives nothing up gives everything."""
        self._finish()
        try:
            async with asyncio.timeout(seconds):
                return await impatient(self.random, call, late)
        except TimeoutError as why:
            if isinstance(why, TimedOut):
                raise
            return None

    def _finish(self) -> None:
        self.world.history.finishes(self.working)
        self.working = []

    def _one(self, record: ConsumerRecord | None) -> None:
        self._handed([] if record is None else [record])

    def _many(self, found: dict[TopicPartition, list[ConsumerRecord]]) -> None:
        self._handed([record for records in found.values() for record in records])

    def _handed(self, records: list[ConsumerRecord]) -> None:
        self.world.history.hands(records)
        self.working = records
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            expected = self.next.get(partition)
            assert expected in (None, record.offset), f"{self.name}: {partition}@{record.offset}, not {expected}"
            if expected is None:
                skipped = [at for at in range(record.offset) if at not in self.world.history.done[partition]]
                assert not skipped, f"{self.name} begins {partition} at {record.offset}: nobody is done with {skipped}"
            self.next[partition] = record.offset + 1

    async def _commit(self, consumer: Consumer) -> None:
        self._finish()
        try:
            await impatient(self.random, consumer.commit(timeout_ms=5_000))
        except (RebalancedError, Unreachable, TimedOut):
            pass
        except BrokerError as why:
            if not why.is_retriable:
                raise

    async def _close(self, consumer: Consumer) -> None:
        self._finish()
        self.is_closing = True
        await impatient(self.random, consumer.close(timeout_ms=self.random.choice((500, 5_000))))
        await consumer.close()

    async def close(self) -> None:
        """Somebody else closes what was left behind, and with it counts all that was handed out as done."""
        assert self.consumer is not None
        self._finish()
        self.is_closing = True
        await self.consumer.close()

    # ---- callbacks

    async def _assigned(self, added: tuple[TopicPartition, ...]) -> None:
        consumer = self.consumer
        assert consumer is not None
        if self.random.random() < 0.2:
            await asyncio.sleep(self.random.choice((0.01, 1.0)))
        for partition in added:
            self.next.pop(partition, None)
        self.world.history.owns(consumer.group, consumer.assignment)
        self.world.history.takes(self.name, added)

    async def _revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        if not self.is_closing:  # a member that has been thrown out may not know it yet
            self.world.history.gives_up(self.name, partitions)
        await self._removed(partitions)

    async def _removed(self, partitions: tuple[TopicPartition, ...]) -> None:
        for partition in partitions:
            self.next.pop(partition, None)
        self.working = [item for item in self.working if TopicPartition(item.topic, item.partition) not in partitions]
        if self.random.random() < 0.2:
            await asyncio.sleep(self.random.choice((0.01, 1.0)))
