"""Three brokers and ZooKeeper as processes; brokers are killed, frozen, restarted, all at once, ZooKeeper stands still.

Meanwhile unmodified clients write and commit. Afterwards everything progresses (L1, R1, I3, O1): every acknowledged
record is at its offset, an idempotent producer's records are there once and in order, no acknowledged commit is lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.soak import SOAK
from tools.cluster import Cluster
from tools.zookeeper import missing

pytestmark = pytest.mark.java

TOPIC, PARTITIONS = "t", 3
TROUBLES = 12 if SOAK else 5
HEALED_SECONDS = 30
PROPERTIES = {"replica.lag.time.max.ms": "3000", "rota.drain.timeout.ms": "1000"}


class Writer:
    """An idempotent producer of 0, 1, 2, … to one partition; `acknowledged` are offsets by value."""

    def __init__(self, bootstrap: str, partition: int) -> None:
        self.partition, self.sent = partition, 0
        self.acknowledged: dict[int, int] = {}
        self.errors: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 120_000,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.002):
            if len(self._producer) < 5000:
                self._producer.produce(
                    TOPIC, str(self.sent).encode(), partition=self.partition, on_delivery=self._delivered
                )
                self.sent += 1
            self._producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged[int(message.value())] = message.offset()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(HEALED_SECONDS)


class Committer:
    """Commits 1, 2, 3, … for a group; `acknowledged` is the last commit that was answered."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.group, self.sent, self.acknowledged = group, 0, 0
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 0}
        )
        self._consumer.assign([TopicPartition(TOPIC, 0)])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.005):
            self.sent += 1
            try:
                self._consumer.commit(offsets=[TopicPartition(TOPIC, 0, self.sent)], asynchronous=False)
            except KafkaException:
                continue  # it may be written, or not
            self.acknowledged = self.sent

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()


def make_trouble(cluster: Cluster, random: Random) -> str:
    """Do one thing to the cluster, and undo it; returns what."""
    broker = random.choice(cluster.brokers)
    match random.choice(("kill", "kill", "freeze", "stop", "kill all", "pause ZooKeeper")):
        case "kill":
            cluster.kill(broker)
            time.sleep(random.uniform(0, 3))
            cluster.start(broker)
            return f"kill {broker}"
        case "freeze":
            cluster.freeze(broker)
            time.sleep(random.uniform(0.1, 3))
            cluster.thaw(broker)
            return f"freeze {broker}"
        case "stop":
            cluster.stop(broker)
            cluster.start(broker)
            return f"stop {broker}"
        case "kill all":
            for each in cluster.brokers:
                cluster.kill(each)
            for each in random.sample(cluster.brokers, len(cluster.brokers)):
                cluster.start(each, wait=False)
            for each in cluster.brokers:
                cluster.wait(each)
            return "kill all"
        case _:
            cluster.zookeeper.pause()
            time.sleep(random.uniform(0.1, 2))
            cluster.zookeeper.resume()
            return "pause ZooKeeper"


def until(condition: Callable[[], bool], why: str) -> None:
    deadline = time.monotonic() + HEALED_SECONDS
    while not condition():
        assert time.monotonic() < deadline, why
        time.sleep(0.02)


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


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    reason = missing()
    if reason is not None:
        pytest.skip(f"no ZooKeeper: {reason}")
    with Cluster(tmp_path, properties=PROPERTIES) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
        admin.create_topics([topic])[TOPIC].result(HEALED_SECONDS)
        yield cluster


def test_nothing_acknowledged_is_lost_whatever_happens_to_brokers(cluster: Cluster, seed: int) -> None:
    random, troubles = Random(seed), list[str]()
    writers = [Writer(cluster.bootstrap, partition) for partition in range(PARTITIONS)]
    committer = Committer(cluster.bootstrap, "g")
    try:
        for _ in range(TROUBLES):
            time.sleep(random.uniform(0, 1))
            troubles.append(make_trouble(cluster, random))
        before = [len(writer.acknowledged) for writer in writers]
        until(
            lambda: all(len(writer.acknowledged) > count for writer, count in zip(writers, before, strict=True)),
            f"no record is acknowledged any more after {troubles}",
        )
        until(lambda: all(len(cluster.isr(TOPIC, i)) == 3 for i in range(PARTITIONS)), f"ISR small after {troubles}")
    finally:
        for writer in writers:
            writer.stop()
        committer.stop()
    for writer in writers:
        check(writer, list(records(cluster.bootstrap, writer.partition)), troubles)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0})
    (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=HEALED_SECONDS)
    consumer.close()
    assert committer.acknowledged <= committed.offset <= committer.sent, troubles


def check(writer: Writer, found: list[tuple[int, int]], troubles: list[str]) -> None:
    values = [value for _, value in found]
    by_offset = dict(found)
    assert writer.errors == [], troubles
    lost = {value: offset for value, offset in writer.acknowledged.items() if by_offset.get(offset) != value}
    assert lost == {}, troubles
    assert values == sorted(set(values)), f"twice, or out of order, after {troubles}"
