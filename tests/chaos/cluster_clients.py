"""Clients that write histories on a cluster while faults are injected, and what has to be true of them afterwards.

Each writer sends 0, 1, 2, … to one partition with an idempotent producer: librdkafka's, kafka-python's, Rota's own, or
Java's, which also reads all partitions as the only member of a group.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any, cast

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.interop.java_classes import command
from tests.soak import SOAK
from tools.peer.jars import lib

import rota.client as rota

TOPIC = "t"
JAVA_GROUP = "java"
HEALED_SECONDS = 30
BEGIN_SECONDS = 120  # a Java on a busy machine
GIVE_UP_MS = 120_000
PACE_MS = 2 if SOAK else 50  # between two records of a writer
CALM_PACE_MS = 2 if SOAK else 150  # the same where a test finds its mutations with fewer records
UNACKNOWLEDGED_MAX = 2_000
GENERATION_AFTER, NO_GENERATION = b"CGMDv2:", -1


class Writer:
    """`acknowledged` are offsets by value, `errors` what was given up. `stop` sends what is left."""

    def __init__(self, bootstrap: str, partition: int, pace_ms: int = PACE_MS) -> None:
        self.bootstrap, self.partition, self.pace_ms, self.sent = bootstrap, partition, pace_ms, 0
        self.acknowledged: dict[int, int] = {}
        self.errors: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        raise NotImplementedError

    def _next(self) -> bytes:
        self.sent += 1
        return str(self.sent - 1).encode()

    @property
    def is_ahead(self) -> bool:
        return self.sent - len(self.acknowledged) - len(self.errors) >= UNACKNOWLEDGED_MAX

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


class ConfluentWriter(Writer):
    def _run(self) -> None:
        settings = {"linger.ms": 2, "message.timeout.ms": GIVE_UP_MS, "enable.idempotence": True, "log_level": 0}
        producer = Producer({"bootstrap.servers": self.bootstrap, **settings})
        while not self._stopping.wait(self.pace_ms / 1000):
            if not self.is_ahead:
                producer.produce(TOPIC, self._next(), partition=self.partition, on_delivery=self._delivered)
            producer.poll(0)
        producer.flush(HEALED_SECONDS)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged[int(message.value())] = message.offset()


class ProcessWriter(Writer):
    """A process that writes until its standard input ends, and says what was acknowledged."""

    def _run(self) -> None:
        arguments = (self.bootstrap, TOPIC, str(self.partition), str(GIVE_UP_MS), str(self.pace_ms))
        command = self._command(*arguments)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            threading.Thread(target=self._end, args=(process.stdin,)).start()
            for line in process.stdout:
                self._line_received(line.strip())
        if process.returncode:
            self.errors.append(f"the process ended with {process.returncode}")

    def _command(self, *arguments: str) -> list[str]:
        raise NotImplementedError

    def _line_received(self, line: str) -> None:
        """One line of its output: `acked VALUE OFFSET` or `error TEXT`."""
        what, _, rest = line.partition(" ")
        if what == "acked":
            value, offset = map(int, rest.split())
            self.acknowledged[value] = offset
        else:
            self.errors.append(rest)

    def _end(self, stdin: IO[str]) -> None:
        self._stopping.wait()
        with suppress(OSError):
            stdin.close()


class PythonWriter(ProcessWriter):
    """kafka-python's."""

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tests.chaos.python_writer", *arguments]


class JavaWriter(ProcessWriter):
    """Java's, which also reads the topic. `position` is what it reads next, `committed` its last commit."""

    def __init__(self, bootstrap: str, partition: int, pace_ms: int = PACE_MS) -> None:
        self.read: dict[tuple[int, int], int] = {}  # (partition, offset) -> value
        self.position: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        super().__init__(bootstrap, partition, pace_ms)

    def _command(self, *arguments: str) -> list[str]:
        return command("History.java", *arguments, JAVA_GROUP)

    def _line_received(self, line: str) -> None:
        what, *numbers = line.split(" ")
        if what == "got":
            self._got(*map(int, numbers))
        elif what == "committed":
            partition, offset = map(int, numbers)
            self.committed[partition] = offset
        else:
            super()._line_received(line)

    def _got(self, partition: int, offset: int, value: int) -> None:
        """After a rebalance it reads again from what is committed; it never skips a record."""
        first, expected = self.committed.get(partition, 0), self.position.get(partition, 0)
        if not first <= offset <= expected:
            self.errors.append(f"read {offset} of {partition}; {first} is committed, {expected} comes next")
        if self.read.setdefault((partition, offset), value) != value:
            self.errors.append(f"read {value} at {offset} of {partition}, where another record was before")
        self.position[partition] = offset + 1


class RotaWriter(Writer):
    def _run(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        config = rota.ProducerConfig(
            bootstrap_servers=self.bootstrap, enable_idempotence=True, linger_ms=2, delivery_timeout_ms=GIVE_UP_MS
        )
        async with rota.Producer(config) as producer, asyncio.TaskGroup() as deliveries:
            while not self._stopping.is_set():
                await asyncio.sleep(self.pace_ms / 1000)
                if not self.is_ahead:
                    value = self._next()
                    delivery = await producer.send(TOPIC, value, partition=self.partition)
                    deliveries.create_task(self._await(int(value), delivery))
            await producer.flush(timeout_ms=HEALED_SECONDS * 1000)

    async def _await(self, value: int, delivery: Any) -> None:
        try:
            self.acknowledged[value] = (await delivery).offset
        except rota.KafkaError as error:
            self.errors.append(str(error))


WRITERS: tuple[type[Writer], ...] = (ConfluentWriter, PythonWriter, RotaWriter)  # for one partition each
if lib() is not None:  # the jars that `tools.peer` fetches
    WRITERS = (*WRITERS, JavaWriter)
PARTITIONS = len(WRITERS)


class Committer:
    """Commits 1, 2, 3, … for a group, and reads from time to time what is committed, which must not go back.

    `acknowledged` is the last commit that was answered, `seen` the last offset that was read, `errors` are those of
    commits that may be written, or not.
    """

    def __init__(self, bootstrap: str, group: str, pace_ms: int = PACE_MS) -> None:
        self.group, self.pace_ms, self.sent, self.acknowledged, self.seen = group, pace_ms, 0, 0, 0
        self.violations: list[str] = []
        self.errors: list[str] = []
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 0}
        )
        self._consumer.assign([TopicPartition(TOPIC, 0)])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(self.pace_ms / 1000):
            self.sent += 1
            try:
                self._consumer.commit(offsets=[TopicPartition(TOPIC, 0, self.sent)], asynchronous=False)
            except KafkaException as error:
                self.errors.append(str(error))
                continue
            self.acknowledged = self.sent
            if self.sent % 20 == 0:
                self._look()

    def _look(self) -> None:
        try:
            (committed,) = self._consumer.committed([TopicPartition(TOPIC, 0)], timeout=2)
        except KafkaException:
            return
        if not max(self.seen, self.acknowledged) <= committed.offset <= self.sent:
            self.violations.append(f"{committed.offset} is committed; {self.seen} was seen, {self.acknowledged} acked")
        self.seen = committed.offset

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()


class Member(Writer):
    """A member of a group. `claims` is shared by all: who had a partition in a generation (G1)."""

    def __init__(self, bootstrap: str, name: str, claims: dict[tuple[int, int], str]) -> None:
        self.name, self.claims, self.polls = name, claims, 0
        super().__init__(bootstrap, -1)

    def _claim(self, generation: int, partitions: Iterable[int]) -> None:
        """It has these partitions in that generation."""
        for partition in partitions:
            owner = self.claims.setdefault((generation, partition), self.name)
            if owner != self.name:
                self.errors.append(f"{(generation, partition)} belongs to {owner} and to {self.name}")


class RotaMember(Member):
    def _run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        config = rota.ConsumerConfig(bootstrap_servers=self.bootstrap, group_id="members", session_timeout_ms=6_000)
        async with rota.Consumer(config) as consumer:
            consumer.subscribe([TOPIC])
            while not self._stopping.is_set():
                await consumer.getmany(timeout_ms=50)
                self.polls += bool(consumer.assignment)
                self._claim(consumer.group.generation_id, [partition.partition for partition in consumer.assignment])


class ConfluentMember(Member):
    """librdkafka's. It joins a generation only after it has given up what it had in the one before."""

    def _run(self) -> None:
        group = {"group.id": "members", "session.timeout.ms": 6_000, "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "log_level": 0, **group})
        consumer.subscribe([TOPIC])
        while not self._stopping.is_set():
            consumer.poll(0.05)
            generation, assignment = self._generation(consumer), consumer.assignment()
            if assignment and generation == self._generation(consumer) != NO_GENERATION:
                self.polls += 1
                self._claim(generation, [partition.partition for partition in assignment])
        consumer.close()

    @staticmethod
    def _generation(consumer: Consumer) -> int:
        """In the bytes that a transactional producer would be given: `CGMDv2:`, the generation, the member's ids."""
        metadata = cast(bytes, consumer.consumer_group_metadata())
        assert metadata.startswith(GENERATION_AFTER), metadata
        return int.from_bytes(metadata[len(GENERATION_AFTER) :][:4], sys.byteorder, signed=True)


MEMBERS: tuple[type[Member], ...] = (RotaMember, RotaMember, ConfluentMember)


def until(condition: Callable[[], bool], why: str, seconds: float = HEALED_SECONDS) -> None:
    """Wait until it is true. Fails when everything has been well for so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, why
        time.sleep(0.1)  # a condition may ask a broker


def records(bootstrap: str, partition: int) -> Iterator[tuple[int, int]]:
    """(offset, value) of all records of a partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=HEALED_SECONDS)
        consumer.assign([TopicPartition(TOPIC, partition, 0)])
        offset = 0
        while offset < end:
            message = consumer.poll(HEALED_SECONDS)
            assert message is not None, f"no record at {offset} of {end}"
            assert message.error() is None, message.error()
            offset = message.offset() + 1
            yield message.offset(), int(message.value())
    finally:
        consumer.close()


def check(writer: Writer, found: list[tuple[int, int]], faults: list[str]) -> None:
    """L1, R1, I3: nothing acknowledged is lost, nothing is there twice or out of order."""
    values = [value for _, value in found]
    by_offset = dict(found)
    assert writer.errors == [], faults
    lost = {value: offset for value, offset in writer.acknowledged.items() if by_offset.get(offset) != value}
    assert lost == {}, faults
    assert values == sorted(set(values)), f"{type(writer).__name__}: twice, or out of order, after {faults}"


def check_reads(writer: JavaWriter, logs: dict[int, list[tuple[int, int]]], faults: list[str]) -> None:
    """L1, O1: what was read is in the log in the end, and no acknowledged commit is lost."""
    logged = {(partition, offset): value for partition, log in logs.items() for offset, value in log}
    vanished = {at: value for at, value in writer.read.items() if logged.get(at) != value}
    assert vanished == {}, faults
    assert writer.committed.keys() == logs.keys(), faults
    consumer = Consumer({"bootstrap.servers": writer.bootstrap, "group.id": JAVA_GROUP, "log_level": 0})
    partitions = [TopicPartition(TOPIC, partition) for partition in writer.committed]
    for found in consumer.committed(partitions, timeout=HEALED_SECONDS):
        assert found.offset >= writer.committed[found.partition], faults
    consumer.close()
