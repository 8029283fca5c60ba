from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from math import ceil

import pytest
from structlog.testing import capture_logs
from tests.unit.coordinator.controller_service.members import Member, Members
from tests.unit.coordinator.controller_service.test_service import brief

from rota.coordinator.controller.decisions import Decision
from rota.coordinator.controller_service.state_writer import RESERVED_OPS, Fenced, StateWriter, portions
from rota.coordinator.metadata import znodes
from rota.coordinator.metadata.commits import OPS_PER_COMMIT_MAX
from rota.coordinator.metadata.store import Check, Delete, Op
from rota.coordinator.metadata.topic import PartitionState, Topic


@pytest.fixture
async def member() -> AsyncIterator[Member]:
    """The controller sleeps: nobody else writes."""
    with capture_logs():
        async with Members(1) as cluster:
            await cluster[1].service.stop()
            yield cluster[1]


def shrink(member: Member, topic: Topic) -> list[Decision]:
    current = member.topics.get(topic.name)
    assert current is not None
    return [Decision(current, state, replace(state, isr=(1,))) for state in current.partitions]


def again(_: Topic, state: PartitionState) -> PartitionState | None:
    return None if state.isr == (1,) else replace(state, isr=(1,))


async def test_partitions_of_any_number_are_written(member: Member) -> None:
    topic = await member.cluster.create("t", *[(1, 2)] * 4500)
    before = member.store.last_change
    assert await StateWriter(member.topics).write(shrink(member, topic), again) == 4500
    assert member.store.last_change == before + ceil(4500 / (OPS_PER_COMMIT_MAX - RESERVED_OPS - 1))
    current = member.topics.get("t")
    assert current is not None
    assert {state.isr for state in current.partitions} == {(1,)}
    assert {state.version for state in current.partitions} == {1}


async def test_partitions_that_changed_meanwhile_are_decided_again(member: Member) -> None:
    topic = await member.cluster.create("t", (1, 2, 3), (1, 2, 3), (1, 2, 3))
    decisions = shrink(member, topic)
    for index, isr in enumerate([(1, 2), (1,)]):
        await member.cluster.write("t", replace(member.cluster.state("t", index), isr=isr))
    assert await StateWriter(member.topics).write(decisions, again) == 2
    assert [brief(member.cluster.state("t", index)) for index in range(3)] == [(1, (1,))] * 3
    assert [member.cluster.state("t", index).version for index in range(3)] == [2, 1, 1]


def create_again_before_the_next_commit(member: Member) -> None:
    """Topic t is deleted and created again with the same replicas."""
    commit = member.store.commit

    async def commit_after_creation(ops: Sequence[Op]) -> object:
        member.store.commit = commit  # type: ignore[method-assign]
        await member.topics.delete("t")
        await member.cluster.create("t", (1, 2))
        return await commit(ops)

    member.store.commit = commit_after_creation  # type: ignore[assignment, method-assign]


async def test_a_decision_on_a_deleted_topic_does_not_change_the_next_topic_of_that_name(member: Member) -> None:
    """SW4. The nodes of both topics have the same versions."""
    topic = await member.cluster.create("t", (1, 2))
    other = await member.cluster.create("u", (1, 2))
    decisions = [*shrink(member, topic), *shrink(member, other)]
    create_again_before_the_next_commit(member)
    assert await StateWriter(member.topics).write(decisions, again) == 1
    assert [brief(member.cluster.state(name)) for name in ("t", "u")] == [(1, (1, 2)), (1, (1,))]


async def test_replicas_for_a_deleted_topic_do_not_replace_those_of_the_next_topic(member: Member) -> None:
    """SW4. A reassignment writes the topic's node, which has the id."""
    topic = await member.cluster.create("t", (1, 2))
    moved = [Decision(topic, state, replace(state, replicas=(1, 3), adding=(3,))) for state in topic.partitions]
    create_again_before_the_next_commit(member)
    assert await StateWriter(member.topics).write(moved, again) == 0
    assert member.cluster.state("t").replicas == (1, 2)
    current = member.topics.get("t")
    assert current is not None
    assert current.topic_id != topic.topic_id


def test_decisions_of_many_topics_fit_into_commits() -> None:
    """Each topic has a check of its own."""
    topics = [Topic(name=f"t{number}", topic_id=number.to_bytes(16, "big"), partitions=()) for number in range(2000)]
    state = PartitionState(index=0, leader=1, replicas=(1, 2), isr=(1, 2))
    decisions = [Decision(topic, state, replace(state, isr=(1,))) for topic in topics]
    split = list(portions(decisions))
    assert [decision for portion in split for decision in portion] == decisions
    assert max(2 * len(portion) + RESERVED_OPS for portion in split) <= OPS_PER_COMMIT_MAX
    assert len(split) == ceil(2 * 2000 / (OPS_PER_COMMIT_MAX - RESERVED_OPS))


async def test_a_fence_that_has_fallen_lets_nothing_through(member: Member) -> None:
    topic = await member.cluster.create("t", (1, 2))
    decisions, old = shrink(member, topic), Check(znodes.CONTROLLER_EPOCH, 0)
    delete = Delete(znodes.broker_path(1))
    with pytest.raises(Fenced):
        await StateWriter(member.topics).write(decisions, again, old)
    with pytest.raises(Fenced):
        await StateWriter(member.topics).delete_and_write([delete], decisions, again, old)
    assert brief(member.cluster.state()) == (1, (1, 2))
    assert znodes.broker_path(1) in member.cluster.shared.tree.nodes


async def test_an_already_deleted_node_stops_no_write(member: Member) -> None:
    topic = await member.cluster.create("t", (1, 2))
    deletes = [Delete(znodes.broker_path(broker_id)) for broker_id in (7, 1)]
    fence = Check(znodes.CONTROLLER_EPOCH, 1)
    assert await StateWriter(member.topics).delete_and_write(deletes, shrink(member, topic), again, fence) == 1
    assert brief(member.cluster.state()) == (1, (1,))
    assert znodes.broker_path(1) not in member.cluster.shared.tree.nodes


async def test_replicas_change_with_the_topics_node(member: Member) -> None:
    await member.cluster.create("t", (1, 2), (1, 2))
    topic = member.topics.get("t")
    assert topic is not None
    moved = [Decision(topic, state, replace(state, replicas=(1, 3), adding=(3,))) for state in topic.partitions]
    assert await StateWriter(member.topics).write(moved, lambda _t, _s: None) == 2
    assert [member.cluster.state("t", index).replicas for index in range(2)] == [(1, 3), (1, 3)]
    current = member.topics.get("t")
    assert current is not None
    assert [state.adding for state in current.partitions] == [(3,), (3,)]


async def test_a_partition_that_others_change_before_each_commit_delays_no_other_and_is_logged(member: Member) -> None:
    topic = await member.cluster.create("t", *[(1, 2, 3)] * 9)
    commit = member.store.commit

    async def commit_after_another_writer(ops: Sequence[Op]) -> object:
        if any(op.path == znodes.state_path("t", 4) for op in ops):
            state = member.cluster.state("t", 4)
            await member.cluster.write("t", replace(state, leader_epoch=state.leader_epoch + 1))
        return await commit(ops)

    member.store.commit = commit_after_another_writer  # type: ignore[assignment, method-assign]
    with capture_logs() as logs:
        assert await StateWriter(member.topics).write(shrink(member, topic), again) == 8
    assert [brief(member.cluster.state("t", index))[1] == (1,) for index in range(9)].count(False) == 1
    (line,) = [line for line in logs if line["event"] == "Partition state not written"]
    assert (line["topic"], line["partition"], line["log_level"]) == ("t", 4, "warning")
