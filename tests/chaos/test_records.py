"""kill -9 in a stream of records: the acknowledged ones lie where they were said to lie. L1, L2, I1, I3."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos.daemon import Daemon
from tests.chaos.line import Line
from tests.chaos.requests import batch, create_topic, produce, produced, producer_id, records_of

from rota.protocol.errors import ErrorCode

PIPELINED = 20
FILLER = bytes(4_000)  # so that segments roll
LARGE_FILLER = bytes(40_000)  # so that they roll every dozen batches: many crashes come right after a roll
Sent = tuple[int, list[bytes], Any]  # sequence of the first record, the values, the answer


class Producer:
    """Batches of one to three records for a partition of its own; idempotent when it has an id."""

    def __init__(self, partition: int, random: Random, producer: int = -1, filler: bytes = FILLER) -> None:
        self.partition, self.random, self.id, self.filler = partition, random, producer, filler
        self.values = 0
        self.acknowledged: dict[int, bytes] = {}
        self.unanswered: list[tuple[int, list[bytes]]] = []

    @property
    def is_idempotent(self) -> bool:
        return self.id >= 0

    async def stream(self, line: Line) -> None:
        """Until the connection breaks."""
        depth = 5 if self.is_idempotent else PIPELINED  # a broker remembers five batches of a producer
        under_way = [self.send(line) for _ in range(depth)]
        while under_way:
            sequence, values, answer = under_way.pop(0)
            reply = await answer
            if reply is None:
                self.unanswered.append((sequence, values))
                continue
            self.note(values, reply)
            under_way.append(self.send(line))

    def send(self, line: Line) -> Sent:
        first = self.values
        count = self.random.randrange(1, 4)
        values = [b"%d/%d/%s" % (self.partition, first + at, self.filler) for at in range(count)]
        self.values += len(values)
        return self.resend(line, first, values)

    def resend(self, line: Line, sequence: int, values: list[bytes]) -> Sent:
        records = batch(*values, producer=self.id, sequence=sequence if self.is_idempotent else -1)
        return sequence, values, line.send(produce(self.partition, records), 9)

    def note(self, values: list[bytes], reply: Any) -> None:
        error, base = produced(reply)
        assert error is ErrorCode.NONE
        for at, value in enumerate(values):
            assert self.acknowledged.setdefault(base + at, value) == value

    async def check(self, line: Line) -> None:
        found = await records_of(line, self.partition)
        assert {offset: found.get(offset) for offset in self.acknowledged} == self.acknowledged
        assert list(found) == list(range(len(found)))
        numbers = [int(value.split(b"/")[1]) for value in found.values()]
        assert numbers == sorted(set(numbers)), "out of order, or twice"


async def crash_under(daemon: Daemon, producers: list[Producer], random: Random, records_max: int = 300) -> Line:
    """Let them produce, kill the broker in the midst of it; a connection to its next life."""
    lines = [await daemon.line() for _ in producers]
    expected = random.randrange(1, records_max)
    before = sum(len(item.acknowledged) for item in producers)
    async with asyncio.TaskGroup() as tasks:
        for producer, line in zip(producers, lines, strict=True):
            tasks.create_task(producer.stream(line))
        while sum(len(item.acknowledged) for item in producers) - before < expected:
            await asyncio.sleep(0.001)
        await asyncio.sleep(random.random() / 100)
        await daemon.crash()
    return await daemon.line()


async def test_acknowledged_records_survive(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    producers = [Producer(partition, Random(f"{seed}-{partition}")) for partition in range(3)]
    async with Daemon(tmp_path / "data", log_segment_bytes="1048576") as daemon:
        await create_topic(await daemon.line(), partitions=4)
        for _ in range(3):
            line = await crash_under(daemon, producers, random)
            for producer in producers:
                await producer.check(line)


async def test_retried_batches_of_an_idempotent_producer_are_written_once(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    async with Daemon(tmp_path / "data", log_segment_bytes="1048576") as daemon:
        await create_topic(await daemon.line(), partitions=4)
        line = await daemon.line()
        producers = [Producer(at, Random(f"{seed}-{at}"), await producer_id(line), LARGE_FILLER) for at in range(2)]
        for _ in range(3):
            line = await crash_under(daemon, producers, random, 100)
            for producer in producers:
                again, producer.unanswered = producer.unanswered, []
                for sequence, values in again:
                    producer.note(values, await producer.resend(line, sequence, values)[2])
                await producer.check(line)
                found = await records_of(line, producer.partition)
                assert len(found) == producer.values, "each value once"


async def test_a_duplicate_of_an_acknowledged_batch_gets_its_first_offset(tmp_path: Path) -> None:
    async with Daemon(tmp_path / "data") as daemon:
        await create_topic(await daemon.line(), partitions=4)
        line = await daemon.line()
        producer = await producer_id(line)
        batches = [batch(b"%d" % at, producer=producer, sequence=at) for at in range(6)]
        offsets = [produced(await line.send_request(produce(0, each), 9)) for each in batches]
        await daemon.crash()
        line = await daemon.line()
        again = [produced(await line.send_request(produce(0, each), 9)) for each in batches[1:]]
        assert again == offsets[1:]
        skipped = batch(b"later", producer=producer, sequence=9)
        error, _ = produced(await line.send_request(produce(0, skipped), 9))
        assert error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_producer_ids_are_never_given_twice(seed: int, tmp_path: Path) -> None:
    random, given = Random(seed), list[int]()
    async with Daemon(tmp_path / "data") as daemon:
        for _ in range(4):
            line = await daemon.line()
            expected = random.randrange(1, 1_200)  # blocks are of a thousand
            given += await asyncio.gather(*(producer_id(line) for _ in range(expected)))
            await daemon.crash()
    assert len(set(given)) == len(given)


async def test_records_are_whole_with_every_batch_flushed(tmp_path: Path) -> None:
    random = Random(1)
    producers = [Producer(partition, Random(partition)) for partition in range(2)]
    async with Daemon(tmp_path / "data", log_flush_interval_messages="1") as daemon:
        await create_topic(await daemon.line(), partitions=4)
        for _ in range(2):
            line = await crash_under(daemon, producers, random, 60)
            for producer in producers:
                await producer.check(line)
