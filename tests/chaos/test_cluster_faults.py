"""Three brokers as processes on a network that loses one direction, on a disk that fills, on a ZooKeeper that dies.

Meanwhile librdkafka, kafka-python, Java's and Rota's client write, commit and share a group. Afterwards everything
progresses within 30 seconds (L1, R1, I3, O1, G1): see `cluster_clients`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.chaos.cluster_clients import (
    BEGIN_SECONDS,
    CALM_PACE_MS,
    HEALED_SECONDS,
    MEMBERS,
    PARTITIONS,
    TOPIC,
    WRITERS,
    Committer,
    JavaWriter,
    Member,
    Writer,
    check,
    check_reads,
    records,
    until,
)
from tests.soak import soak_only
from tools.networked_cluster import NetworkedCluster, missing

pytestmark = pytest.mark.java

FAULTS = 8
Fault = Callable[[list[Writer]], str]  # returns what was done
PROPERTIES = {
    "replica.lag.time.max.ms": "3000",
    "rota.drain.timeout.ms": "1000",
    "zookeeper.session.timeout.ms": "6000",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NetworkedCluster]:
    reason = missing()
    if reason is not None:
        pytest.skip(f"no cluster whose network can be cut: {reason}")
    with NetworkedCluster(tmp_path, PROPERTIES) as cluster:
        create_topic(cluster)
        yield cluster


def create_topic(cluster: NetworkedCluster) -> None:
    """The topic of the writers: three replicas, min.insync.replicas=2."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[TOPIC].result(HEALED_SECONDS)


def _progress(writers: list[Writer], members: list[Member], committer: Committer) -> list[int]:
    return [
        *(len(writer.acknowledged) for writer in writers),
        *(member.polls for member in members),
        committer.acknowledged,
    ]


def check_with_faults(cluster: NetworkedCluster, faults: Sequence[Fault], random: Random) -> None:
    """Cause these faults one after the other while clients work; check what they have written."""
    done, claims = list[str](), dict[tuple[int, int], str]()
    writers = [writer(cluster.bootstrap, partition, CALM_PACE_MS) for partition, writer in enumerate(WRITERS)]
    members = [member(cluster.bootstrap, name, claims) for name, member in zip("abc", MEMBERS, strict=True)]
    committer = Committer(cluster.bootstrap, "g", CALM_PACE_MS)
    clients = (*writers, *members, committer)
    try:
        until(
            lambda: all(len(writer.acknowledged) > 10 for writer in writers), "the writers do not begin", BEGIN_SECONDS
        )
        for fault in faults:
            done.append(fault(writers))
            time.sleep(random.uniform(0, 1))
        before = _progress(writers, members, committer)
        until(
            lambda: all(now > then for now, then in zip(_progress(writers, members, committer), before, strict=True)),
            f"not everybody goes on after {done}",
        )
        until(lambda: all(len(cluster.isr(TOPIC, i)) == 3 for i in range(PARTITIONS)), f"ISR small after {done}")
    finally:
        for client in clients:
            client.stop()
    logs = {writer.partition: list(records(cluster.bootstrap, writer.partition)) for writer in writers}
    for writer in writers:
        check(writer, logs[writer.partition], done)
        if isinstance(writer, JavaWriter):
            check_reads(writer, logs, done)
    assert [member.errors for member in members] == [[] for _ in members], f"G1: {done}"
    assert committer.violations == [], f"O1: {done}"


Scenario = Callable[[NetworkedCluster, Random], Fault]


def part(cluster: NetworkedCluster, random: Random) -> Fault:
    """A broker, or a leader, is cut off in one direction, or in both, from one or from all others."""

    def fault(_: list[Writer]) -> str:
        broker = random.choice((cluster.leader(TOPIC, random.randrange(PARTITIONS)), random.choice(cluster.brokers)))
        others = [other for other in cluster.brokers if other != broker][: random.choice((1, 2))]
        ways = random.choice(("is not heard", "does not hear", "neither hears nor is heard"))
        for other in others:
            if ways != "does not hear":
                cluster.network.cut(broker, other)
            if ways != "is not heard":
                cluster.network.cut(other, broker)
        time.sleep(random.uniform(0.5, 4))
        cluster.network.heal()
        return f"{broker} {ways} by {others}"

    return fault


def leader_of_one(cluster: NetworkedCluster, random: Random) -> int:
    """The leader of one partition, once it has one again after the fault before."""
    partition = random.randrange(PARTITIONS)
    until(lambda: cluster.leader(TOPIC, partition) > 0, f"partition {partition} has no leader")
    return cluster.leader(TOPIC, partition)


def fill_a_disk(cluster: NetworkedCluster, random: Random) -> Fault:
    """A5. Nothing that was acknowledged was only on the full disk; when there is room again the replica comes back."""

    def fault(_: list[Writer]) -> str:
        broker = leader_of_one(cluster, random)
        with cluster.full_disk(broker):
            time.sleep(random.uniform(1, 4))
        return f"the disk of {broker} was full"

    return fault


def kill_zookeeper(cluster: NetworkedCluster, random: Random) -> Fault:
    """While it is away nothing is elected, and a leader that is killed then is replaced when it is back."""

    def fault(_: list[Writer]) -> str:
        cluster.zookeeper.kill()
        time.sleep(random.uniform(0, 2))
        victim = random.choice(cluster.brokers) if random.random() < 0.5 else None
        if victim is not None:
            cluster.kill(victim)
        cluster.zookeeper.start()
        if victim is not None:
            cluster.start(victim)
        return f"ZooKeeper was killed, and broker {victim}"

    return fault


def pause_zookeeper(cluster: NetworkedCluster, random: Random) -> Fault:
    """Sessions end when it goes on."""

    def fault(_: list[Writer]) -> str:
        cluster.zookeeper.pause()
        seconds = random.uniform(1, 8)
        time.sleep(seconds)
        cluster.zookeeper.resume()
        return f"ZooKeeper stood still for {seconds:.1f} s"

    return fault


def freeze(cluster: NetworkedCluster, random: Random) -> Fault:
    """CM2. It has slept through the election of another leader, with requests in its sockets."""

    def fault(_: list[Writer]) -> str:
        broker = leader_of_one(cluster, random)
        cluster.freeze(broker)
        time.sleep(random.uniform(0.3, 3))
        cluster.thaw(broker)
        return f"{broker} was frozen"

    return fault


SCENARIOS: Final[list[Scenario]] = [part, fill_a_disk, kill_zookeeper, pause_zookeeper, freeze]


def test_one_fault_of_each_kind(cluster: NetworkedCluster, seed: int) -> None:
    """One cluster for all of them: starting it and its clients costs as much processor time as three faults."""
    random = Random(seed)
    scenarios = random.sample(SCENARIOS, len(SCENARIOS))
    check_with_faults(cluster, [scenario(cluster, random) for scenario in scenarios], random)


@soak_only
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_faults_of_one_kind(cluster: NetworkedCluster, seed: int, scenario: Scenario) -> None:
    random = Random(seed)
    check_with_faults(cluster, [scenario(cluster, random)] * FAULTS, random)
