"""How long clients wait when brokers of a cluster die, freeze or restart: three brokers and ZooKeeper, as processes.

    python -m benchmarks.failover             every scenario once
    python -m benchmarks.failover leader 5    one scenario, five times

Clients are confluent-kafka at its defaults; where a leader is killed also kafka-python and Rota's. Times in seconds.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tools.cluster import Cluster, ask

import rota.client as rota
from rota.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from rota.protocol.records.record import Record, write_batch

WAIT_S: Final = 60.0
TOPIC: Final = "t"
RECORD: Final = b"x" * 100
BACKLOG_BYTES: Final = 50 << 20
JOINING_S: Final = 0.3  # a member's first connections, and its first JoinGroup


class Writer:
    """Sends a record to one partition every few ms, acks=all, and notes when each was acknowledged."""

    def __init__(self, cluster: Cluster, partition: int = 0, topic: str = TOPIC) -> None:
        self._bootstrap, self._topic, self._partition = cluster.bootstrap, topic, partition
        self.acknowledged: list[tuple[float, float]] = []  # sent, acknowledged
        self.errors: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 0})
        while not self._stopping.wait(0.005):
            done = partial(self._done, time.perf_counter())
            producer.produce(self._topic, RECORD, partition=self._partition, on_delivery=done)
            producer.poll(0)
        producer.flush(WAIT_S)

    def _done(self, sent: float, error: object, _: object) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged.append((sent, time.perf_counter()))

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def first_after(self, at: float) -> float:
        """Seconds from `at` until a record that was sent later is acknowledged."""
        deadline = time.perf_counter() + WAIT_S
        while time.perf_counter() < deadline:
            if self.acknowledged and self.acknowledged[-1][0] > at:
                return min(done for sent, done in list(self.acknowledged) if sent > at) - at
            time.sleep(0.002)
        raise TimeoutError("nothing was acknowledged any more")

    def longest_silence(self) -> float:
        times = sorted(done for _, done in self.acknowledged)
        return longest_gap(times)


class KafkaPythonWriter(Writer):
    """The same with kafka-python."""

    def _run(self) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self._bootstrap.split(","))
        while not self._stopping.wait(0.005):
            sent = time.perf_counter()
            record = producer.send(self._topic, RECORD, partition=self._partition)
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
                await asyncio.sleep(0.005)
                sent = time.perf_counter()
                delivery = await producer.send(self._topic, RECORD, partition=self._partition)
                deliveries.create_task(self._await(sent, delivery))

    async def _await(self, sent: float, delivery: rota.Delivery) -> None:
        try:
            await delivery
        except rota.KafkaError as error:
            self._done(sent, error, None)
        else:
            self._done(sent, None, None)


WRITERS: Final = {"librdkafka": Writer, "kafka-python": KafkaPythonWriter, "rota.client": RotaWriter}


class Committer:
    """A member of a group that commits again and again; counts how often it was assigned."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        self.assignments = 0
        self.committed: list[float] = []
        self._consumer = Consumer(
            {"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False}
        )
        self._consumer.subscribe([TOPIC], on_assign=self._assigned)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _assigned(self, consumer: Any, partitions: Any) -> None:
        self.assignments += 1

    def _run(self) -> None:
        offset = 0
        while not self._stopping.is_set():
            self._consumer.poll(0.005)
            if not self.assignments:
                continue
            offset += 1
            try:
                self._consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
            except KafkaException:
                continue
            self.committed.append(time.perf_counter())

    def first_after(self, at: float) -> float:
        deadline = time.perf_counter() + WAIT_S
        while time.perf_counter() < deadline:
            if self.committed and self.committed[-1] > at:
                return next(done for done in self.committed if done > at) - at
            time.sleep(0.002)
        raise TimeoutError("nothing was committed any more")

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()


def longest_gap(times: Sequence[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(times))


@contextmanager
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="rota-failover-") as folder, Cluster(Path(folder)) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for future in admin.create_topics([NewTopic(TOPIC, 3, 3, config={"min.insync.replicas": "2"})]).values():
            future.result(WAIT_S)
        yield running


def until(condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + WAIT_S
    while not condition():
        if time.perf_counter() > deadline:
            raise TimeoutError("it did not come to that")
        time.sleep(0.02)


def acknowledged_after(running: Cluster, without: int, at: float) -> float:
    """Seconds from `at` until one of the other brokers acknowledges a record, for clients that ask anew."""
    records = write_batch([Record(0, int(time.time() * 1000), None, RECORD, ())])
    data = (PartitionProduceData(index=0, records=records),)
    request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(TopicProduceData(name=TOPIC, partition_data=data),))
    while time.perf_counter() < at + WAIT_S:
        for broker in running.brokers:
            if broker == without:
                continue
            address = ("127.0.0.1", running.ports[broker])
            response = ask(address, request, 9, ProduceResponse).responses[0].partition_responses[0]
            if response.error_code == 0:
                return time.perf_counter() - at
        time.sleep(0.005)
    raise TimeoutError("nothing was acknowledged any more")


def killed_leader() -> dict[str, float]:
    """kill -9 of a partition's leader, until acks=all goes on."""
    with cluster() as running:
        writers = {name: writer(running) for name, writer in WRITERS.items()}
        until(lambda: all(len(writer.acknowledged) > 100 for writer in writers.values()))
        leader = running.leader(TOPIC)
        at = time.perf_counter()
        running.kill(leader)
        seconds = {name: writer.first_after(at) for name, writer in writers.items()}
        for name, writer in writers.items():
            writer.stop()
            assert not writer.errors, (name, writer.errors[:3])
        return seconds


def frozen_leader() -> dict[str, float]:
    """SIGSTOP of a partition's leader, until acks=all goes on for a client that asks anew; then it wakes up again.

    A client that waits for an answer of the frozen leader waits for its own request timeout, whatever the brokers do.
    """
    with cluster() as running:
        leader = running.leader(TOPIC)
        time.sleep(2)
        at = time.perf_counter()
        running.freeze(leader)
        seconds = acknowledged_after(running, leader, at)
        time.sleep(3)
        running.thaw(leader)
        woken = time.perf_counter()
        until(lambda: len(running.isr(TOPIC)) == 3)
        return {"acks=all goes on": seconds, "in the ISR again after it woke": time.perf_counter() - woken}


def killed_coordinator() -> dict[str, float]:
    """kill -9 of a group's coordinator, until commits go on; the member is not assigned again."""
    with cluster() as running:
        member = Committer(running, "g")
        until(lambda: len(member.committed) > 50)
        coordinator = running.coordinator("g")
        at = time.perf_counter()
        running.kill(coordinator)
        seconds = member.first_after(at)
        rejoined = member.assignments - 1
        member.stop()
        return {"commits go on": seconds, "rejoined (times)": rejoined}


def killed_while_joining() -> dict[str, float]:
    """kill -9 of a group's coordinator while a member joins, until the last member commits again."""
    with cluster() as running:
        members = [Committer(running, "g")]
        until(lambda: len(members[0].committed) > 50)
        coordinator = running.coordinator("g")
        members.append(Committer(running, "g"))
        time.sleep(JOINING_S)
        at = time.perf_counter()
        running.kill(coordinator)
        seconds = max(member.first_after(at) for member in members)
        for member in members:
            member.stop()
        return {"the last member commits again": seconds}


def rolling_restart() -> dict[str, float]:
    """SIGTERM and start of each broker, one after the other, under load."""
    with cluster() as running:
        writers = [Writer(running, partition) for partition in range(3)]
        until(lambda: all(len(writer.acknowledged) > 200 for writer in writers))
        stops = []
        for broker in running.brokers:
            began = time.perf_counter()
            running.stop(broker)
            stops.append(time.perf_counter() - began)
            running.start(broker)
            until(lambda: all(len(running.isr(TOPIC, partition)) == 3 for partition in range(3)))
        for writer in writers:
            writer.stop()
        errors = sum(len(writer.errors) for writer in writers)
        silence = max(writer.longest_silence() for writer in writers)
        return {"longest silence of a partition": silence, "longest stop": max(stops), "errors (count)": errors}


def all_killed() -> dict[str, float]:
    """All brokers killed at once and started again, until acks=all goes on."""
    with cluster() as running:
        writer = Writer(running)
        until(lambda: len(writer.acknowledged) > 200)
        at = time.perf_counter()
        for broker in running.brokers:
            running.kill(broker)
        for broker in running.brokers:
            running.start(broker, wait=False)
        seconds = writer.first_after(at)
        writer.stop()
        return {"acks=all goes on": seconds}


def follower_behind() -> dict[str, float]:
    """A follower that missed 50 MB, from its start until it is in the ISR again."""
    with cluster() as running:
        writer = Writer(running)
        until(lambda: len(writer.acknowledged) > 50)
        writer.stop()
        leader = running.leader(TOPIC)
        follower = next(broker for broker in running.brokers if broker != leader)
        running.stop(follower)
        producer = Producer({"bootstrap.servers": running.bootstrap, "linger.ms": 5, "acks": 1})
        for _ in range(BACKLOG_BYTES // 1000):
            producer.produce(TOPIC, bytes(1000), partition=0)
            producer.poll(0)
            if len(producer) > 50_000:
                producer.flush(1)
        producer.flush(WAIT_S)
        began = time.perf_counter()
        running.start(follower)
        until(lambda: follower in running.isr(TOPIC))
        return {"in the ISR again": time.perf_counter() - began}


def paused_zookeeper() -> dict[str, float]:
    """ZooKeeper stands still for 15 seconds."""
    with cluster() as running:
        writer, member = Writer(running), Committer(running, "g")
        until(lambda: len(writer.acknowledged) > 200 and len(member.committed) > 50)
        running.zookeeper.pause()
        time.sleep(15)
        running.zookeeper.resume()
        time.sleep(5)
        member.stop()
        writer.stop()
        return {
            "longest silence of a producer": writer.longest_silence(),
            "longest silence of commits": longest_gap(member.committed),
            "errors (count)": len(writer.errors),
        }


SCENARIOS: Final[dict[str, Callable[[], dict[str, float]]]] = {
    "leader": killed_leader,
    "coordinator": killed_coordinator,
    "joining": killed_while_joining,
    "frozen": frozen_leader,
    "rolling": rolling_restart,
    "all": all_killed,
    "behind": follower_behind,
    "zookeeper": paused_zookeeper,
}


def main(arguments: list[str]) -> int:
    names = arguments[:1] or list(SCENARIOS)
    times = int(arguments[1]) if len(arguments) > 1 else 1
    for name in names:
        results = [SCENARIOS[name]() for _ in range(times)]
        print(f"{name}: {(SCENARIOS[name].__doc__ or '').strip()}")
        for what in results[0]:
            values = [result[what] for result in results]
            print(f"    {what:32} median {statistics.median(values):7.3f}  worst {max(values):7.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
