"""Kafka Streams with `processing.guarantee=exactly_once_v2`, killed in mid-transaction and started again."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.interop.java_kit import JavaProgram, needs_java
from tests.interop.kit import create_topic, unique, until
from tests.soak import soak_only

pytestmark = [*needs_java, soak_only]
PROGRAM = str(Path(__file__).with_name("java") / "ExactlyOnce.java")
PARTITIONS, WORDS, EACH, BEFORE_KILL, WAIT_SECONDS = 2, 5, 400, 100, 90


class Counts:
    """The committed counts of each word, in the order of the log."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.by_word: dict[str, list[int]] = defaultdict(list)
        settings = {"bootstrap.servers": bootstrap, "group.id": unique("counts"), "isolation.level": "read_committed"}
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])

    def reached(self, records: int) -> bool:
        """Read what there is; return whether there are that many records."""
        while (message := self._consumer.poll(0.1)) is not None:
            if message.error() is None:
                self.by_word[message.key().decode()].append(int(message.value()))
        return sum(map(len, self.by_word.values())) >= records

    def close(self) -> None:
        self._consumer.close()


def send(bootstrap: str, topic: str) -> None:
    """EACH records of each word."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(WORDS * EACH):
        producer.produce(topic, key=str(number), value=f"word-{number % WORDS}")
    assert producer.flush(WAIT_SECONDS) == 0


@pytest.mark.timeout(400)
def test_each_record_is_counted_once_through_a_kill(bootstrap: str, tmp_path: Path) -> None:
    words, counts_topic = create_topic(bootstrap, PARTITIONS), create_topic(bootstrap, PARTITIONS)
    arguments = (bootstrap, str(tmp_path), unique("count"), words, counts_topic)
    counts = Counts(bootstrap, counts_topic)
    send(bootstrap, words)
    with JavaProgram(PROGRAM, *arguments) as program:
        until(lambda: counts.reached(BEFORE_KILL), "the first counts", seconds=WAIT_SECONDS)
        program.kill()
    seen = sum(map(len, counts.by_word.values()))
    send(bootstrap, words)
    with JavaProgram(PROGRAM, *arguments) as program:
        until(lambda: counts.reached(2 * WORDS * EACH), "all counts", seconds=WAIT_SECONDS)
        assert "ERROR" not in program.lines
        assert program.stop() == 143, "it ends by SIGTERM"
    assert counts.reached(0)
    counts.close()
    assert seen < 2 * WORDS * EACH, "it was killed too late"
    expected = list(range(1, 2 * EACH + 1))
    assert dict(counts.by_word) == {f"word-{number}": expected for number in range(WORDS)}
