"""Three brokers and ZooKeeper as processes; brokers are killed, frozen, restarted, all at once, ZooKeeper stands still.

Meanwhile librdkafka, kafka-python, Java's and Rota's client write, read and commit. Afterwards everything progresses
(L1, R1, I3, O1): every acknowledged record is at its offset, an idempotent producer's records are there once and in
order, what was read is in the log, committed offsets never go back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.chaos.cluster_clients import (
    BEGIN_SECONDS,
    HEALED_SECONDS,
    PARTITIONS,
    TOPIC,
    WRITERS,
    Committer,
    JavaWriter,
    check,
    check_reads,
    records,
    until,
)
from tests.chaos.running_cluster import running_cluster
from tests.soak import SOAK
from tools.cluster import Cluster

pytestmark = pytest.mark.java

FAULTS = 12
KINDS = ("kill", "kill", "freeze", "stop", "kill all", "pause ZooKeeper")
KINDS_OF_THE_GATE = ("kill", "stop", "kill all")  # the others are in test_cluster_faults.py, too
PROPERTIES = {"replica.lag.time.max.ms": "3000", "rota.drain.timeout.ms": "1000"}


def inject_fault(cluster: Cluster, kind: str, random: Random) -> str:
    """Do one thing to the cluster, and undo it; returns what."""
    broker = random.choice(cluster.brokers)
    match kind:
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


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path, PARTITIONS, PROPERTIES) as cluster:
        yield cluster


def test_no_acknowledged_record_is_lost_under_broker_faults(cluster: Cluster, seed: int) -> None:
    random, faults = Random(seed), list[str]()
    writers = [writer(cluster.bootstrap, partition) for partition, writer in enumerate(WRITERS)]
    committer = Committer(cluster.bootstrap, "g")
    try:
        until(lambda: all(writer.acknowledged for writer in writers), "the writers do not begin", BEGIN_SECONDS)
        for kind in random.choices(KINDS, k=FAULTS) if SOAK else random.sample(KINDS_OF_THE_GATE, 3):
            time.sleep(random.uniform(0, 1))
            faults.append(inject_fault(cluster, kind, random))
        before = [len(writer.acknowledged) for writer in writers]
        until(
            lambda: all(len(writer.acknowledged) > count for writer, count in zip(writers, before, strict=True)),
            f"no record is acknowledged any more after {faults}",
        )
        until(lambda: all(len(cluster.isr(TOPIC, i)) == 3 for i in range(PARTITIONS)), f"ISR small after {faults}")
    finally:
        for writer in writers:
            writer.stop()
        committer.stop()
    logs = {writer.partition: list(records(cluster.bootstrap, writer.partition)) for writer in writers}
    for writer in writers:
        check(writer, logs[writer.partition], faults)
        if isinstance(writer, JavaWriter):
            check_reads(writer, logs, faults)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0})
    (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=HEALED_SECONDS)
    consumer.close()
    assert max(committer.acknowledged, committer.seen) <= committed.offset <= committer.sent, faults
    assert committer.violations == [], faults
