"""Producers that note when each of their records was acknowledged: those of librdkafka, Java, kafka-python and Rota."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import kafka
from confluent_kafka import Message, Producer
from tools.broker_processes import BrokerProcesses
from tools.peer.jars import QUICK, java

import rota.client as rota

WAIT_S: Final = 120.0
RECORD: Final = b"x" * 100
PERIOD_S: Final = 0.005
JAVA: Final = Path(__file__).with_name("Writer.java")


class Writer:
    """Sends a record to one partition every few ms, acks=all, and notes when each was acknowledged.

    `end` follows the last offset that librdkafka was told.
    """

    def __init__(self, cluster: BrokerProcesses, topic: str, partition: int = 0) -> None:
        self._bootstrap, self._topic, self.partition, self.end = cluster.bootstrap, topic, partition, 0
        self.acknowledged: list[tuple[float, float]] = []  # sent, acknowledged
        self.errors: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 0, "log_level": 2})
        while not self._stopping.wait(PERIOD_S):
            done = partial(self._delivered, time.perf_counter())
            producer.produce(self._topic, RECORD, partition=self.partition, on_delivery=done)
            producer.poll(0)
        producer.flush(WAIT_S)

    def _delivered(self, sent: float, error: object, message: Message) -> None:
        if error is None:
            self.end = max(self.end, (message.offset() or 0) + 1)
        self._done(sent, error, message)

    def _done(self, sent: float, error: object, _: object) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged.append((sent, time.perf_counter()))

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def first_after(self, at: float) -> float:
        """Seconds from `at` until a record that was sent later is acknowledged. Raises TimeoutError."""
        deadline = time.perf_counter() + WAIT_S
        while time.perf_counter() < deadline:
            if self.acknowledged and self.acknowledged[-1][0] > at:
                return min(done for sent, done in list(self.acknowledged) if sent > at) - at
            time.sleep(0.002)
        raise TimeoutError("nothing was acknowledged any more")

    def longest_silence(self) -> float:
        return longest_gap(sorted(done for _, done in self.acknowledged))


class JavaWriter(Writer):
    """The same with Kafka's Java client, in a process of its own whose clock is ours."""

    def _run(self) -> None:
        arguments = [self._bootstrap, self._topic, str(self.partition), f"{PERIOD_S * 1000:.0f}", str(len(RECORD))]
        command = java(*QUICK, str(JAVA), *arguments)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            reader = threading.Thread(target=self._read, args=(program,), daemon=True)
            reader.start()
            self._stopping.wait()
            assert program.stdin is not None
            program.stdin.close()
            reader.join()

    def _read(self, program: subprocess.Popen[str]) -> None:
        assert program.stdout is not None
        for line in program.stdout:
            sent, _, done = line.partition(" ")
            if sent == "error":
                self.errors.append(done.strip())
            else:
                self.acknowledged.append((int(sent) / 1e9, int(done) / 1e9))


class KafkaPythonWriter(Writer):
    """The same with kafka-python."""

    def _run(self) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self._bootstrap.split(","))
        while not self._stopping.wait(PERIOD_S):
            sent = time.perf_counter()
            record = producer.send(self._topic, RECORD, partition=self.partition)
            record.add_callback(partial(self._done, sent, None)).add_errback(partial(self._failed, sent))
        producer.close(WAIT_S)

    def _failed(self, sent: float, error: object) -> None:
        self._done(sent, error, None)


class RotaWriter(Writer):
    """The same with Rota's client."""

    def _run(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        config = rota.ProducerConfig(bootstrap_servers=self._bootstrap)
        async with rota.Producer(config) as producer, asyncio.TaskGroup() as deliveries:
            while not self._stopping.is_set():
                await asyncio.sleep(PERIOD_S)
                sent = time.perf_counter()
                delivery = await producer.send(self._topic, RECORD, partition=self.partition)
                deliveries.create_task(self._await(sent, delivery))

    async def _await(self, sent: float, delivery: rota.Delivery) -> None:
        try:
            await delivery
        except rota.KafkaError as error:
            self._done(sent, error, None)
        else:
            self._done(sent, None, None)


WRITERS: Final = {
    "librdkafka": Writer,
    "Java": JavaWriter,
    "kafka-python": KafkaPythonWriter,
    "rota.client": RotaWriter,
}


def longest_gap(times: Sequence[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(times))
