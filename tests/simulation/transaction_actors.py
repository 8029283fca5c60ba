"""The transactional producers and read_committed readers of a simulated cluster."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.client_actors import QUICK, impatient
from tests.simulation.transaction_history import Outcome, Transaction

from rota.client.config import ConsumerConfig, ProducerConfig
from rota.client.consumer.consumer import Consumer
from rota.client.errors import (
    BrokerError,
    CommitOutcomeUnknown,
    DeliveryFailed,
    IllegalUse,
    KafkaError,
    TimedOut,
    TransactionAbortable,
    TransactionFailed,
    Unreachable,
)
from rota.client.producer.producer import Producer
from rota.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from tests.simulation.transaction_world import TransactionWorld

GROUP = "offsets-of-transactions"
END_MS = 4_000  # of one attempt to commit or abort
ATTEMPTS_MAX = 5


class GivenUp(Exception):
    """The producer does not end its transaction: whoever comes next does."""


class TransactionalProducer:
    """One producer of a place. It ends when the run is over, when it is fenced, or when it gives up."""

    def __init__(self, world: TransactionWorld, place: int, number: int, random: Random) -> None:
        self.world, self.place, self.number, self.random = world, place, number, random
        self.begun = 0
        self.is_old = random.random() < 0.3  # a client that does not know transaction.version 2
        self.config = ProducerConfig(
            bootstrap_servers=world.bootstrap,
            transactional_id=f"place-{place}",
            transaction_timeout_ms=random.choice((3_000, 10_000)),
            linger_ms=random.choice((0, 5)),
            batch_size=random.choice((200, 16_384)),
            delivery_timeout_ms=10_000,
            max_block_ms=5_000,
            max_in_flight_requests_per_connection=random.choice((1, 5)),
            **QUICK,
        )

    async def act(self) -> None:
        producer = await self._started()
        if producer is None:
            return
        assert producer._transactions is not None
        self.world.transactions.initialized(self.place, self.number, producer._transactions.machine.producer)
        try:
            while not self.world.is_over:
                await self._transact(producer)
                await asyncio.sleep(self.random.choice((0.0, 0.02, 0.3, 1.5)))
        except TransactionFailed as why:
            self.world.log_line(f"producer {self.place}.{self.number}: {why}")
        except GivenUp:
            self.world.log_line(f"producer {self.place}.{self.number} gives up")
        with suppress(KafkaError):  # DeliveryFailed: which each record was told too
            await producer.close(timeout_ms=END_MS)

    async def _started(self) -> Producer | None:
        """None if the run is over before."""
        while not self.world.is_over:
            producer = Producer(self.config)
            if self.is_old:
                producer._cluster.finalized_feature = lambda name: 0  # type: ignore[method-assign]
            try:
                return await producer.start()
            except (Unreachable, TimedOut, TransactionAbortable):
                await producer.close()
        return None

    async def _transact(self, producer: Producer) -> None:
        await producer.begin_transaction()
        self.begun += 1
        transaction = self.world.transactions.begin(self.place, self.number, self.begun)
        try:
            await self._fill(producer, transaction)
            if self.random.random() < 0.75:
                await self._commit(producer, transaction)
                return
        except (TransactionAbortable, TimedOut, DeliveryFailed) as why:
            self.world.log_line(f"transaction {transaction.name}: {why}")
        await self._abort(producer, transaction)

    async def _fill(self, producer: Producer, transaction: Transaction) -> None:
        """Send records, and then sometimes offsets; now and then it takes longer than the transaction may."""
        for _ in range(self.random.choice((1, 2, 5))):
            partition = self.random.choice(self.world.partitions)
            transaction.records.append(partition)
            await producer.send(self.world.topic, transaction.values[-1], partition=partition.partition)
            await asyncio.sleep(self.random.choice((0.0, 0.0, 0.01, 0.2)))
        if self.random.random() < 0.5:
            transaction.offset = self.world.transactions.next_offset()
            offsets = {TopicPartition(self.world.topic, self.place): OffsetAndMetadata(transaction.offset)}
            await producer.send_offsets(offsets, GroupMetadata(GROUP))
        if self.random.random() < 0.3:
            await producer.flush()
        if self.random.random() < 0.05:
            await asyncio.sleep(self.random.choice((1.0, 4.0)))

    async def _commit(self, producer: Producer, transaction: Transaction) -> None:
        """Raises what leaves the transaction to be aborted, TransactionFailed, GivenUp."""

        async def commit() -> bool:
            await producer.commit_transaction(timeout_ms=END_MS)
            return True

        self.world.transactions.commit_requested(transaction, self.number)
        was_left = False
        for _ in range(ATTEMPTS_MAX):
            try:
                if await impatient(self.random, commit()):
                    self.world.transactions.committed(transaction)
                    return
                was_left = True
            except CommitOutcomeUnknown:
                await asyncio.sleep(self.random.choice((0.0, 0.5)))
            except IllegalUse:  # it was committed while nobody waited for it
                assert was_left
                return
        raise GivenUp

    async def _abort(self, producer: Producer, transaction: Transaction) -> None:
        """Raises TransactionFailed, GivenUp."""
        for _ in range(ATTEMPTS_MAX):
            try:
                await producer.abort_transaction(timeout_ms=END_MS)
            except TimedOut:
                await asyncio.sleep(0.5)
            else:
                transaction.outcome = Outcome.ABORTED
                return
        raise GivenUp


class CommittedReader:
    """A read_committed reader of all partitions, from their beginning."""

    def __init__(self, world: TransactionWorld, name: str, random: Random) -> None:
        self.world, self.name, self.random = world, name, random
        self.config = ConsumerConfig(
            bootstrap_servers=world.bootstrap,
            client_id=name,
            group_id=GROUP,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=random.choice((50, 500)),
            max_partition_fetch_bytes=random.choice((300, 1_048_576)),
            **QUICK,
        )

    async def act(self) -> None:
        """Read for a while, or until the run is over."""
        consumer = Consumer(self.config)
        with suppress(Unreachable, TimedOut):
            await consumer.start()
            consumer.assign(self.world.partitions)
            consumer.seek_to_beginning()  # the group's offsets are no positions of this reader
            ends_at = self.world.loop.time() + self.random.choice((3.0, 20.0))
            while self.world.loop.time() < ends_at and not self.world.is_over:
                await self._read(consumer)
                await self._read_offset(consumer, self.random.choice(self.world.places))
                await asyncio.sleep(self.random.choice((0.05, 0.5)))
        await consumer.close()

    async def read_all(self) -> dict[int, int]:
        """Read up to the end, after the run. Returns the committed offsets by place, -1 where there is none."""
        async with Consumer(self.config) as consumer:
            consumer.assign(self.world.partitions)
            consumer.seek_to_beginning()  # the group's offsets are no positions of this reader
            ends = await consumer.end_offsets(self.world.partitions)
            while any([await consumer.position(partition) < end for partition, end in ends.items()]):
                await self._read(consumer)
            return {place: await self._read_offset(consumer, place) for place in self.world.places}

    async def _read(self, consumer: Consumer) -> None:
        for partition, records in (await consumer.getmany(timeout_ms=100)).items():
            for record in records:
                assert record.value is not None
                self.world.transactions.read(self.name, partition, record.offset, record.value)

    async def _read_offset(self, consumer: Consumer, place: int) -> int:
        """The committed offset; -1 if there is none, or it cannot be read now."""
        partition, acknowledged = TopicPartition(self.world.topic, place), self.world.transactions.acknowledged(place)
        try:
            found = (await consumer.committed([partition], timeout_ms=2_000))[partition]
        except (TimedOut, BrokerError):
            return -1
        offset = -1 if found is None else found.offset
        self.world.transactions.read_offset(place, offset, acknowledged)
        return offset
