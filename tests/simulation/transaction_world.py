"""A cluster with transactional producers, that are replaced while they still act, and read_committed readers.

Brokers, faults and the laws of the cluster are those of `cluster_world`, without its other clients and without the
administrator. Producers crash, are replaced by a producer with the same transactional id before they have ended, let
transactions time out, and give commits up; a third of them do not know transaction.version 2. The laws are those of
`transaction_history`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.simulation.client_world import LogLine, silent
from tests.simulation.cluster_world import BROKERS, HEALING_S, ClusterWorld, play_in
from tests.simulation.transaction_actors import CommittedReader, TransactionalProducer
from tests.simulation.transaction_history import Log, Outcome, TransactionHistory

from rota.client.types import TopicPartition
from rota.protocol.records.batch import headers

PLACES, READERS = 3, 2  # a place has an offset of its own: at most as many as partitions


class TransactionWorld(ClusterWorld):
    """`play(seed)`."""

    settings = {
        "transaction.state.log.num.partitions": "3",
        "transaction.max.timeout.ms": "10000",
        "group.initial.rebalance.delay.ms": "0",
    }
    places = range(PLACES)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.transactions = TransactionHistory()
        self._left_alone: list[asyncio.Future[None]] = []  # producers that were replaced and go on

    def _begin_clients(self) -> list[asyncio.Future[None]]:
        places = [asyncio.ensure_future(self._place(place)) for place in self.places]
        return [*places, *(asyncio.ensure_future(self._read()) for _ in range(READERS))]

    async def _place(self, place: int) -> None:
        """One producer after the other; some of them before the one before has ended."""
        random, number = self._fork(), 0
        while not self.is_over:
            number += 1
            name = self.name("p")
            life = self.begin(TransactionalProducer(self, place, number, self._fork()).act, name)
            await asyncio.wait({life}, timeout=random.choice((1.0, 4.0, 12.0)))
            end = random.random()
            if not life.done() and end < 0.4:
                await self._crash(name, life, random.random() < 0.5)
            elif not life.done() and end < 0.8:
                self.log_line(f"{name} is replaced, and goes on")
                self._left_alone.append(life)
            else:
                await life
            await asyncio.sleep(random.choice((0.0, 0.5)))
        await asyncio.gather(*self._left_alone)

    async def _read(self) -> None:
        while not self.is_over:
            name = self.name("r")
            await self.begin(CommittedReader(self, name, self._fork()).act, name)

    async def _check_clients(self) -> None:
        """XS4: every transaction ends, by its producer or its timeout, and its markers are written."""
        ends = self.loop.time() + HEALING_S
        while unstable := [str(partition) for partition in self.partitions if not self._is_stable(partition)]:
            assert self.loop.time() < ends, f"XS4: not stable {HEALING_S} s after everything healed: {unstable}"
            await asyncio.sleep(0.5)
        name = self.name("r")
        reader = CommittedReader(self, name, self._fork())
        reading = self.loop.create_task(reader.read_all())
        self.offsets = await asyncio.wait_for(reading, HEALING_S)

    def _is_stable(self, at: TopicPartition) -> bool:
        for process in self._up():
            assert process.broker is not None
            partition = process.broker.partitions.get(at.topic, at.partition)
            if partition is not None and partition.is_leader:
                return bool(partition.last_stable_offset == partition.high_watermark == partition.log.log_end_offset)
        return False

    async def _check_logs(self) -> None:
        records = await self._logs()
        self.transactions.check({at: Log.of(self._bytes(at)) for at in self.partitions}, self.offsets)
        counts = {outcome.name: self.transactions.count(outcome) for outcome in Outcome}
        self.log_line(f"{sum(map(len, records.values()))} records, {self.elections} elections, transactions {counts}")

    def _bytes(self, at: TopicPartition) -> bytes:
        """All batches of a partition. All replicas have the same records: `_logs`."""
        broker = self.brokers[BROKERS[0]].broker
        assert broker is not None
        replica: Any = broker.partitions.get(at.topic, at.partition)
        data, offset = b"", replica.log.log_start_offset
        while offset < replica.log.log_end_offset:
            part = bytes(replica.log.read(offset, 1 << 20))
            found = list(headers(part, cut=True))
            position, last = found[-1]
            data += part[: position + last.size_bytes]
            offset = last.next_offset
        return data


def play(seed: int, log_line: LogLine = silent) -> TransactionWorld:
    """The whole run of a seed, and its laws."""
    return play_in(TransactionWorld, seed, log_line)
