"""Kafka Connect, distributed: workers share connectors through a group of the type `connect`, offsets are in topics."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.interop.connect_worker import Worker
from tests.interop.java_kit import needs_java
from tests.interop.kit import create_topic, unique, until
from tests.soak import soak_only

pytestmark = [*needs_java, pytest.mark.timeout(180)]
FILES = "org.apache.kafka.connect.file.FileStream"
WAIT_SECONDS = 60


def write(file: Path, numbers: range) -> None:
    with file.open("a") as lines:
        lines.writelines(f"line-{number}\n" for number in numbers)


def source(file: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": f"{FILES}SourceConnector",
        "file": str(file),
        "topic": topic,
        "exactly.once.support": "required",
        "transaction.boundary": "poll",
    }


def sink(file: Path, topic: str) -> dict[str, str]:
    override = "consumer.override."
    return {
        "connector.class": f"{FILES}SinkConnector",
        "file": str(file),
        "topics": topic,
        "tasks.max": "2",
        f"{override}isolation.level": "read_committed",
        f"{override}session.timeout.ms": "1500",
        f"{override}heartbeat.interval.ms": "300",
    }


def committed(bootstrap: str, topic: str) -> list[str]:
    """The values of the topic's one partition that transactions have committed, in the order of the log."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": unique("reader"),
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while (message := consumer.poll(WAIT_SECONDS)) is not None and message.error() is None:
        values.append(message.value().decode())
    consumer.close()
    return values


def written(file: Path) -> set[str]:
    return set(file.read_text().split()) if file.exists() else set()


@soak_only
def test_each_line_arrives_once_though_the_worker_of_the_source_is_killed(bootstrap: str, tmp_path: Path) -> None:
    lines, copy, topic, cluster = tmp_path / "lines", tmp_path / "copy", create_topic(bootstrap, 1), unique("connect")
    write(lines, range(500))
    with Worker(bootstrap, cluster, tmp_path) as first, Worker(bootstrap, cluster, tmp_path) as second:
        first.send("PUT", "/connectors/in/config", source(lines, topic))
        second.send("PUT", "/connectors/out/config", sink(copy, topic))
        until(lambda: len(written(copy)) == 500, "the first lines", seconds=WAIT_SECONDS)
        of_both = [*first.status("in")["tasks"], *first.status("out")["tasks"]]
        assert len({task["worker_id"] for task in of_both}) == 2, of_both
        victim, other = sorted((first, second), key=lambda each: f":{each.port}" not in of_both[0]["worker_id"])
        write(lines, range(500, 1500))
        victim.kill()
        write(lines, range(1500, 2000))
        until(lambda: len(written(copy)) == 2000, "all lines", seconds=WAIT_SECONDS)
        assert f":{other.port}" in other.status("in")["tasks"][0]["worker_id"]
    assert committed(bootstrap, topic) == [f"line-{number}" for number in range(2000)]
