"""Kafka's own tools on a cluster: reassignments, elections, offsets, configs and log directories."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.cluster.brokers import Brokers, until
from tests.interop.java_kit import needs_java, run_java

pytestmark = needs_java
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
CONFIGS = "kafka.admin.ConfigCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    async with Brokers(3) as three:
        yield three


async def tool(brokers: Brokers, name: str, *arguments: str) -> str:
    return await asyncio.to_thread(run_java, name, "--bootstrap-server", brokers.bootstrap(), *arguments)


async def create(brokers: Brokers, assignment: str) -> None:
    await tool(brokers, TOPICS, "--create", "--topic", "t", "--replica-assignment", assignment)
    await until(lambda: all(b.topics.partition("t", 0) is not None for b in brokers.by_id.values()))


async def test_partitions_are_reassigned_listed_verified_and_cancelled(brokers: Brokers, tmp_path: Path) -> None:
    await create(brokers, "1:2,2:3")
    plan = tmp_path / "plan.json"
    moves = [{"topic": "t", "partition": 0, "replicas": [3, 2]}, {"topic": "t", "partition": 1, "replicas": [2, 1]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    answer = await tool(brokers, REASSIGN, "--execute", "--reassignment-json-file", str(plan))
    assert "Successfully started partition reassignments for t-0,t-1" in answer
    topics = next(iter(brokers.by_id.values())).topics

    def is_complete() -> bool:
        states = [topics.partition("t", index) for index in range(2)]
        return [state.replicas for state in states if state is not None] == [(3, 2), (2, 1)]

    await until(is_complete, "the reassignment")
    assert "No partition reassignments found." in await tool(brokers, REASSIGN, "--list")
    verified = await tool(brokers, REASSIGN, "--verify", "--reassignment-json-file", str(plan))
    assert "Reassignment of partition t-0 is completed." in verified
    assert "Reassignment of partition t-1 is completed." in verified
    described = await tool(brokers, TOPICS, "--describe", "--topic", "t")
    assert re.search(r"Partition: 0\s+Leader: (3|2)\s+Replicas: 3,2\s+Isr: (2,3|3,2)\s", described)


async def test_a_reassignment_waits_for_its_replicas_and_is_cancelled(brokers: Brokers, tmp_path: Path) -> None:
    await create(brokers, "1:2")
    moves = [{"topic": "t", "partition": 0, "replicas": [1, 3]}]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    brokers.by_id[3].metadata._replication._is_running = False  # type: ignore[union-attr]  # it copies nothing new
    await tool(brokers, REASSIGN, "--execute", "--reassignment-json-file", str(plan))
    assert "t-0: replicas: 1,3,2. adding: 3. removing: 2." in await tool(brokers, REASSIGN, "--list")
    answer = await tool(brokers, REASSIGN, "--cancel", "--reassignment-json-file", str(plan))
    assert "Successfully cancelled partition reassignment for: t-0" in answer
    state = brokers.by_id[1].topics.partition("t", 0)
    assert state is not None
    assert (set(state.replicas), state.adding) == ({1, 2}, ())


async def test_a_throttled_reassignment_is_slow_until_the_throttle_is_raised_and_verify_removes_it(
    brokers: Brokers, tmp_path: Path
) -> None:
    """The records are more than one answer to a follower holds (replica.fetch.max.bytes)."""
    await create(brokers, "1:2")
    await produce(brokers, "t", {0: 300}, value=b"v" * 10_000)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 3]}]}))
    how = ["--reassignment-json-file", str(plan)]
    output = await tool(brokers, REASSIGN, "--execute", *how, "--throttle", "1000")
    assert "The inter-broker throttle limit was set to 1000 B/s" in output
    leader, follower = brokers.by_id[1], brokers.by_id[3]
    await until(lambda: leader.config.leader_replication_throttled_rate == 1000, "the leader's throttle")
    await until(lambda: follower.config.follower_replication_throttled_rate == 1000, "the follower's throttle")
    configs = leader.topics.get("t").configs  # type: ignore[union-attr]
    assert sorted(configs["leader.replication.throttled.replicas"].split(",")) == ["0:1", "0:2"]
    assert configs["follower.replication.throttled.replicas"] == "0:3"
    assert "is still in progress" in await tool(brokers, REASSIGN, "--verify", *how)
    output = await tool(brokers, REASSIGN, "--execute", "--additional", *how, "--throttle", "100000000")
    assert "The inter-broker throttle limit was set to 100000000 B/s" in output
    await until(lambda: leader.topics.partition("t", 0).replicas == (1, 3), "the reassignment")  # type: ignore[union-attr]
    output = await tool(brokers, REASSIGN, "--verify", *how)
    assert "Reassignment of partition t-0 is completed." in output
    assert "Clearing broker-level throttles on brokers 1,2,3" in output
    assert "Clearing topic-level throttles on topic t" in output
    await until(
        lambda: all(b.config.leader_replication_throttled_rate is None for b in brokers.by_id.values()), "rates"
    )
    await until(lambda: leader.topics.get("t").configs == {}, "the configs of the topic")  # type: ignore[union-attr]


async def test_preferred_leaders_are_elected(brokers: Brokers) -> None:
    await create(brokers, "2:1,2:3,1:2")
    await brokers.stop(2)
    await until(lambda: 2 not in {brokers.leader("t", index) for index in range(3)}, "other leaders")
    await brokers.start(2)
    first = brokers.by_id[1].topics
    await until(lambda: all(2 in (s.isr if (s := first.partition("t", i)) else ()) for i in range(3)), "2 in the ISRs")
    answer = await tool(brokers, ELECT, "--election-type", "preferred", "--all-topic-partitions")
    assert re.search(r"Successfully completed leader election \(PREFERRED\) for partitions (t-0, t-1|t-1, t-0)", answer)
    assert [brokers.leader("t", index) for index in range(3)] == [2, 2, 1]
    again = await tool(brokers, ELECT, "--election-type", "preferred", "--topic", "t", "--partition", "0")
    assert "Valid replica already elected for partitions t-0" in again


async def test_an_unclean_leader_is_elected_by_order_only(brokers: Brokers) -> None:
    await create(brokers, "1:2")
    await brokers.stop(2)
    await until(lambda: brokers.by_id[1].topics.partition("t", 0).isr == (1,), "the ISR of 1")  # type: ignore[union-attr]
    await brokers.stop(1)
    await brokers.start(2)
    await until(lambda: brokers.by_id[3].topics.brokers.keys() == {2, 3}, "2")
    assert brokers.leader("t", 0) == -1
    answer = await tool(brokers, ELECT, "--election-type", "unclean", "--topic", "t", "--partition", "0")
    assert "Successfully completed leader election (UNCLEAN) for partitions t-0" in answer
    assert brokers.leader("t", 0) == 2


async def test_offsets_are_those_of_each_partitions_leader(brokers: Brokers) -> None:
    await create(brokers, "1:2,2:3,3:1")
    await produce(brokers, "t", {0: 3, 1: 5, 2: 7})
    answer = await tool(brokers, OFFSETS, "--topic", "t")
    assert sorted(answer.split()) == ["t:0:3", "t:1:5", "t:2:7"]
    answer = await tool(brokers, OFFSETS, "--topic-partitions", "t:1-2", "--time", "earliest")
    assert sorted(answer.split()) == ["t:1:0"]


async def test_configs_of_topics_and_brokers(brokers: Brokers) -> None:
    await create(brokers, "1:2")
    of_topic = ["--entity-type", "topics", "--entity-name", "t"]
    await tool(brokers, CONFIGS, "--alter", *of_topic, "--add-config", "retention.ms=12345")
    await until(lambda: all(b.topics.get("t").configs.get("retention.ms") == "12345" for b in brokers.by_id.values()))  # type: ignore[union-attr]
    assert "retention.ms=12345" in await tool(brokers, CONFIGS, "--describe", *of_topic)
    for broker in brokers.ids:
        of_broker = ["--entity-type", "brokers", "--entity-name", str(broker)]
        assert f"node.id={broker} " in await tool(brokers, CONFIGS, "--describe", "--all", *of_broker)


async def test_log_directories_of_all_brokers(brokers: Brokers) -> None:
    await create(brokers, "1:2,2:3,3:1")
    answer = await tool(brokers, LOG_DIRS, "--describe", "--topic-list", "t")
    described = json.loads(next(line for line in answer.splitlines() if line.startswith("{")))
    hosted = {
        (broker["broker"], partition["partition"])
        for broker in described["brokers"]
        for directory in broker["logDirs"]
        for partition in directory["partitions"]
    }
    assert hosted == {(1, "t-0"), (2, "t-0"), (2, "t-1"), (3, "t-1"), (3, "t-2"), (1, "t-2")}


async def produce(brokers: Brokers, topic: str, counts: dict[int, int], value: bytes = b"x") -> None:
    """Write that many records to each partition, acks=all; each is a batch of its own."""
    producer = Producer({"bootstrap.servers": brokers.bootstrap(), "batch.num.messages": 1})
    for partition, count in counts.items():
        for _ in range(count):
            producer.produce(topic, value, partition=partition)
    assert await asyncio.to_thread(producer.flush, 30) == 0
