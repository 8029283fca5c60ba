"""Kafka's own programs on three broker processes of which one is killed: VerifiableProducer and VerifiableConsumer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.interop.java_kit import JavaProgram, needs_java
from tests.interop.kit import until
from tests.soak import soak_only
from tools.cluster import Cluster
from tools.zookeeper import missing

pytestmark = [*needs_java, pytest.mark.skipif(missing() is not None, reason=f"no ZooKeeper: {missing()}")]
PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
PROPERTIES = {"default.replication.factor": "3", "min.insync.replicas": "2"}
RECORDS, RECORDS_PER_SECOND, BEFORE_KILL = 6_000, 600, 1_000
WAIT_SECONDS = 60


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, properties=PROPERTIES) as running:
        yield running


def create_topic(cluster: Cluster, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(name, partitions)])[name].result(WAIT_SECONDS)
    until(lambda: all(len(cluster.isr(name, index)) == 3 for index in range(partitions)), "all replicas in the ISRs")


def events(program: JavaProgram, name: str) -> list[dict[str, Any]]:
    """The events of that name that the program has printed."""
    lines = [line for line in list(program.lines) if f'"name":"{name}"' in line]  # each record is a line
    return [json.loads(line) for line in lines]


@pytest.mark.timeout(240)
@soak_only
@pytest.mark.parametrize("victim", ["leader", "coordinator"])
def test_verifiable_programs_lose_nothing_when_a_broker_is_killed(cluster: Cluster, victim: str) -> None:
    create_topic(cluster, "t", 3)
    connect = ["--bootstrap-server", cluster.bootstrap, "--topic", "t"]
    limits = ["--max-messages", str(RECORDS), "--throughput", str(RECORDS_PER_SECOND)]
    with (
        JavaProgram(CONSUMER, *connect, "--group-id", "g", "--verbose") as consumer,
        JavaProgram(PRODUCER, *connect, *limits) as producer,
    ):
        until(lambda: len(events(producer, "producer_send_success")) > BEFORE_KILL, "records", seconds=WAIT_SECONDS)
        until(lambda: bool(events(consumer, "offsets_committed")), "commits", seconds=WAIT_SECONDS)
        cluster.kill(cluster.leader("t") if victim == "leader" else cluster.coordinator("g"))
        assert producer.wait() == 0
        sent = {int(event["value"]) for event in events(producer, "producer_send_success")}
        failed = {int(event["value"]) for event in events(producer, "producer_send_error")}  # it never sends again
        assert sent | failed == set(range(RECORDS))
        assert len(sent) > RECORDS / 2

        def consumed() -> set[int]:
            return {int(event["value"]) for event in events(consumer, "record_data")}

        until(lambda: consumed() >= sent, "the records", seconds=WAIT_SECONDS)
        consumer.stop()
    values = [int(event["value"]) for event in events(consumer, "record_data")]
    assert len(values) == len(set(values)), "records were consumed twice"
    assert sent <= set(values) <= sent | failed
    assert len(events(consumer, "partitions_assigned")) == 1, "the member had to join again"
    ends = {offset["partition"]: offset["offset"] for offset in last_commit(consumer)}
    assert sum(ends.values()) == len(values)


def last_commit(consumer: JavaProgram) -> list[dict[str, Any]]:
    """The last committed offset of each partition."""
    latest: dict[int, dict[str, Any]] = {}
    for event in events(consumer, "offsets_committed"):
        assert event["success"], event
        latest |= {offset["partition"]: offset for offset in event["offsets"]}
    return list(latest.values())
