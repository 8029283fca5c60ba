"""A Kafka Streams count with a standby on three broker processes; a broker is killed, then an instance of the count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.interop.java_kit import JavaProgram, needs_java
from tests.interop.kit import until
from tools.cluster import Cluster
from tools.zookeeper import missing

pytestmark = [*needs_java, pytest.mark.skipif(missing() is not None, reason=f"no ZooKeeper: {missing()}")]
PROGRAM = str(Path(__file__).parents[1] / "interop" / "java" / "WordCount.java")
PARTITIONS, WORDS, EACH, WAIT_SECONDS = 2, 6, 100, 60
STATES = ("REBALANCING", "RUNNING", "PENDING_SHUTDOWN", "PENDING_ERROR", "ERROR", "NOT_RUNNING")


class Counts:
    """The latest count of each word in topic `out`."""

    def __init__(self, bootstrap: str) -> None:
        self.by_word: dict[str, int] = {}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "counts", "log_level": 0})
        self._consumer.assign([TopicPartition("out", index, 0) for index in range(PARTITIONS)])

    def reached(self, count: int) -> bool:
        """Read what there is; whether each word has been counted that often, or more (at least once)."""
        while (message := self._consumer.poll(0.1)) is not None:
            if message.error() is None:
                self.by_word[message.key().decode()] = int(message.value())
        return len(self.by_word) == WORDS and min(self.by_word.values()) >= count

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, properties={"min.insync.replicas": "2"}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for created in admin.create_topics([NewTopic(name, PARTITIONS, 3) for name in ("in", "out")]).values():
            created.result(WAIT_SECONDS)
        yield running


def send(cluster: Cluster) -> None:
    """EACH records of each word."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(WORDS * EACH):
        producer.produce("in", key=str(number), value=f"word-{number % WORDS}")
    assert producer.flush(WAIT_SECONDS) == 0


@pytest.mark.timeout(300)
def test_a_count_continues_when_a_broker_and_an_instance_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    programs = [JavaProgram(PROGRAM, cluster.bootstrap, str(tmp_path / f"state-{number}")) for number in range(2)]
    counts = Counts(cluster.bootstrap)
    with programs[0], programs[1]:
        send(cluster)
        until(lambda: counts.reached(EACH), "the first counts", seconds=WAIT_SECONDS)
        until(lambda: all(map(is_running, programs)), "both", seconds=WAIT_SECONDS)
        cluster.kill(cluster.leader("in"))
        send(cluster)
        until(lambda: counts.reached(2 * EACH), "counts after the broker's death", seconds=WAIT_SECONDS)
        assert all("ERROR" not in program.lines for program in programs)
        until(lambda: any(map(standbys, programs)), "a standby", seconds=WAIT_SECONDS)
        survivor = next(program for program in programs if standbys(program))
        ends = changelog_ends(cluster)
        waiting = sorted(standbys(survivor))
        until(lambda: all(standbys(survivor)[i] >= ends[i] - 1 for i in waiting), f"{ends}", seconds=WAIT_SECONDS)
        programs[1 - programs.index(survivor)].kill()
        send(cluster)
        until(lambda: counts.reached(3 * EACH), "counts of the standby", seconds=2 * WAIT_SECONDS)
        check_promoted(survivor, waiting, ends)
        assert survivor.stop() == 143, "it ends by SIGTERM"
    counts.close()


def is_running(program: JavaProgram) -> bool:
    states = [line for line in program.lines if line in STATES]
    return states[-1:] == ["RUNNING"]


def printed(program: JavaProgram, what: str) -> list[list[int]]:
    """The numbers of its lines of that kind; the partition comes first."""
    return [[int(number) for number in line.split()[1:]] for line in program.lines if line.startswith(what + " ")]


def standbys(program: JavaProgram) -> dict[int, int]:
    """By partition: the last offset of the changelog that its standby has."""
    return dict(printed(program, "STANDBY"))


def changelog_ends(cluster: Cluster) -> list[int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends", "log_level": 0})
    partitions = [TopicPartition("count-counts-changelog", index) for index in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(partition, timeout=WAIT_SECONDS)[1] for partition in partitions]
    consumer.close()
    return ends


def check_promoted(survivor: JavaProgram, partitions: list[int], ends: list[int]) -> None:
    """The standbys became active with what they had: hardly a record of the changelog was read for it."""
    promoted = {partition: offset for partition, offset, _ in printed(survivor, "PROMOTED")}
    restored = dict(printed(survivor, "RESTORED"))
    for partition in partitions:
        assert promoted[partition] >= ends[partition] - 1, (promoted, ends)
        assert restored[partition] <= 1 < ends[partition], (restored, ends)
