"""Adding a broker, moving partitions to it, and draining another one, as docs/OPERATIONS.md says, under load."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.chaos.cluster_clients import Committer, ConfluentWriter, Writer, check, records
from tests.cluster.brokers import Brokers, until
from tests.interop.java_kit import needs_java, run_java

from rota.coordinator.broker import Broker
from rota.coordinator.metadata.topic import CONSUMER_OFFSETS

pytestmark = needs_java
TOPIC, ADDED, DRAINED = "t", 4, 3
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    async with Brokers(3) as three:
        yield three


async def tool(brokers: Brokers, name: str, *arguments: str) -> str:
    return await asyncio.to_thread(run_java, name, "--bootstrap-server", brokers.bootstrap(1), *arguments)


async def reassign(brokers: Brokers, plan: Path) -> None:
    """Execute the plan; return when every broker knows the replicas of the plan, and that no move is under way."""
    await tool(brokers, REASSIGN, "--execute", "--reassignment-json-file", str(plan))
    moves = json.loads(plan.read_text())["partitions"]

    def is_done(broker: Broker) -> bool:
        states = {(topic.name, state.index): state for topic in broker.topics for state in topic.partitions}
        planned = all(states[move["topic"], move["partition"]].replicas == tuple(move["replicas"]) for move in moves)
        return planned and not any(state.adding or state.removing for state in states.values())

    await until(lambda: all(map(is_done, brokers.by_id.values())), "the reassignment")


async def go_on(writers: list[Writer], committer: Committer) -> None:
    """Wait until each producer has another record acknowledged, and the group another commit."""

    def progress() -> list[int]:
        return [committer.acknowledged, *(len(writer.acknowledged) for writer in writers)]

    before = progress()
    await until(lambda: all(now > then for now, then in zip(progress(), before, strict=True)), f"progress: {before}")


def replicas(brokers: Brokers) -> set[int]:
    """The brokers that have any partition."""
    return {broker for topic in brokers.by_id[1].topics for state in topic.partitions for broker in state.replicas}


async def test_a_broker_is_added_and_another_one_drained_under_load(brokers: Brokers, tmp_path: Path) -> None:
    """L1, O1, RA1: no client sees an error, every acknowledged record stays at its offset, once and in order."""
    await tool(brokers, TOPICS, "--create", "--topic", TOPIC, "--replica-assignment", "1:2,2:3,3:1")
    await until(lambda: all(TOPIC in broker.topics for broker in brokers.by_id.values()), "the topic")
    writers: list[Writer] = [ConfluentWriter(brokers.bootstrap(), partition) for partition in range(3)]
    committer = Committer(brokers.bootstrap(), "g")
    try:
        await go_on(writers, committer)
        await brokers.start(ADDED)
        await brokers.see_each_other()
        assert ADDED not in replicas(brokers), "an added broker has nothing before a reassignment"
        plan = tmp_path / "plan.json"
        moves = [{"topic": TOPIC, "partition": 0, "replicas": [ADDED, 2]}]
        plan.write_text(json.dumps({"version": 1, "partitions": moves}))
        await reassign(brokers, plan)
        assert brokers.leader(TOPIC, 0) == ADDED
        await go_on(writers, committer)

        topics = tmp_path / "topics.json"
        of_drained = sorted({t.name for t in brokers.by_id[1].topics for s in t.partitions if DRAINED in s.replicas})
        assert {TOPIC, CONSUMER_OFFSETS} <= set(of_drained)
        topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name} for name in of_drained]}))
        generate = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", f"1,2,{ADDED}")
        proposed = await tool(brokers, REASSIGN, *generate)
        found = re.search(r"Proposed partition reassignment configuration\n(\{.*\})", proposed)
        assert found is not None, proposed
        plan.write_text(found[1])
        await reassign(brokers, plan)
        assert DRAINED not in replicas(brokers)
        await go_on(writers, committer)
        await brokers.stop(DRAINED)
        await until(lambda: set(brokers.by_id[1].topics.brokers) == {1, 2, ADDED}, "the registrations")
        await go_on(writers, committer)
    finally:
        await asyncio.gather(*(asyncio.to_thread(client.stop) for client in (*writers, committer)))
    assert committer.errors == []
    assert committer.violations == []
    for writer in writers:
        logged = await asyncio.to_thread(lambda writer=writer: list(records(brokers.bootstrap(), writer.partition)))
        check(writer, logged, ["a broker was added", "another one was drained"])
