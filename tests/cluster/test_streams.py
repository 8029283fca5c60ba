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
        until(lambda: all(program.lines[-1:] == ["RUNNING"] for program in programs), "both", seconds=WAIT_SECONDS)
        cluster.kill(cluster.leader("in"))
        send(cluster)
        until(lambda: counts.reached(2 * EACH), "counts after the broker's death", seconds=WAIT_SECONDS)
        assert all("ERROR" not in program.lines for program in programs)
        programs[0].kill()
        send(cluster)
        until(lambda: counts.reached(3 * EACH), "counts of the standby", seconds=2 * WAIT_SECONDS)
        assert programs[1].stop() == 143, "it ends by SIGTERM"
    counts.close()
