"""Kafka's own tools on a cluster: reassignments and elections."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cluster.brokers import Brokers, until
from tests.interop.java_kit import needs_java, run_java

pytestmark = needs_java
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"


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
    told = await tool(brokers, REASSIGN, "--execute", "--reassignment-json-file", str(plan))
    assert "Successfully started partition reassignments for t-0,t-1" in told
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
    told = await tool(brokers, REASSIGN, "--cancel", "--reassignment-json-file", str(plan))
    assert "Successfully cancelled partition reassignment for: t-0" in told
    state = brokers.by_id[1].topics.partition("t", 0)
    assert state is not None
    assert (set(state.replicas), state.adding) == ({1, 2}, ())


async def test_preferred_leaders_are_elected(brokers: Brokers) -> None:
    await create(brokers, "2:1,2:3,1:2")
    await brokers.stop(2)
    await until(lambda: 2 not in {brokers.leader("t", index) for index in range(3)}, "other leaders")
    await brokers.start(2)
    first = brokers.by_id[1].topics
    await until(lambda: all(2 in (s.isr if (s := first.partition("t", i)) else ()) for i in range(3)), "2 in the ISRs")
    told = await tool(brokers, ELECT, "--election-type", "preferred", "--all-topic-partitions")
    assert re.search(r"Successfully completed leader election \(PREFERRED\) for partitions (t-0, t-1|t-1, t-0)", told)
    assert [brokers.leader("t", index) for index in range(3)] == [2, 2, 1]
    again = await tool(brokers, ELECT, "--election-type", "preferred", "--topic", "t", "--partition", "0")
    assert "Valid replica already elected for partitions t-0" in again
