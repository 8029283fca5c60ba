"""Several brokers create, grow and delete topics of many commits at one time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from rota.coordinator.metadata import commits, topic_nodes, topic_writer, znodes
from rota.coordinator.metadata.brokers import BrokerRegistration
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import Op, StoreFailed
from rota.coordinator.metadata.topic import PartitionState, Refusal, Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.metadata.tree_session import TreeSession

PARTITIONS = 12


@pytest.fixture(autouse=True)
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "OPS_PER_COMMIT_MAX", 6)


class SlowSession(TreeSession):
    """Each call takes a time of its own."""

    def __init__(self, tree: SharedTree, times: random.Random) -> None:
        super().__init__(tree)
        self._times = times

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._slowly(found) if name in ("get", "set", "commit", "children", "exists") else found

    def _slowly(self, call: Any) -> Any:
        async def slow(*arguments: Any, **named: Any) -> Any:
            for _ in range(self._times.randrange(6)):
                await asyncio.sleep(0)
            return await call(*arguments, **named)

        return slow


async def broker(tree: SharedTree, broker_id: int, chance: random.Random) -> Topics:
    """It places topics on itself only."""
    session = SlowSession(tree, chance)
    topics = Topics(session, broker_id=broker_id, fresh_uuid=lambda: chance.randbytes(16), watch=lambda _: None)
    await topics.load()
    topics.brokers = {broker_id: BrokerRegistration(broker_id=broker_id)}
    return topics


async def check(tree: SharedTree, reported: list[Topic]) -> None:
    """What is reported as created is there as a whole."""
    reader = Topics(TreeSession(tree), broker_id=9, fresh_uuid=lambda: bytes(16))
    await reader.load()
    found = reader.get("t")
    assert [topic.topic_id for topic in reported] == ([found.topic_id] if found is not None and reported else [])
    if found is not None:
        assert len(found.partitions) == PARTITIONS
        assert all((state.leader,) == state.replicas for state in found.partitions)


@pytest.mark.parametrize("seed", range(20))
async def test_of_two_concurrent_creations_at_most_one_succeeds(seed: int) -> None:
    chance, tree = random.Random(seed), SharedTree()
    first, second = [await broker(tree, broker_id, chance) for broker_id in (1, 2)]
    outcomes = await asyncio.gather(first.create("t", PARTITIONS), second.create("t", PARTITIONS))
    await check(tree, [outcome for outcome in outcomes if isinstance(outcome, Topic)])
    await tree.close()


@pytest.mark.parametrize("seed", [2, 812, *range(20)])
async def test_a_concurrent_deletion_does_not_delete_the_recreated_topic(seed: int) -> None:
    chance, tree = random.Random(seed), SharedTree()
    first, second = [await broker(tree, broker_id, chance) for broker_id in (1, 2)]
    await first.create("t", PARTITIONS)
    await second.refresh("t")

    async def create_again() -> Topic:
        while True:
            created = await second.create("t", PARTITIONS)
            if isinstance(created, Topic):
                return created
            await second.refresh("t")

    deleted, created = await asyncio.gather(first.delete("t"), create_again())
    assert not isinstance(deleted, Refusal)
    await check(tree, [created])
    await tree.close()


@pytest.mark.parametrize("count", [4, PARTITIONS])
def test_a_growth_that_stopped_half_way_is_in_nobodys_way(count: int) -> None:
    store = EmbeddedStore()
    topics = Topics(store, broker_id=1, fresh_uuid=lambda: bytes(16))
    run_eagerly(topics.load())
    before = run_eagerly(topics.create("t", 2))
    assert isinstance(before, Topic)
    added = tuple(PartitionState(index=index, leader=1, replicas=(1,), isr=(1,)) for index in range(2, 8))
    for ops in list(topic_nodes.growth(before, added, before.version))[:-1]:
        run_eagerly(store.commit(ops))
    grown = run_eagerly(topics.add_partitions("t", count))
    assert isinstance(grown, Topic), grown
    assert len(grown.partitions) == count
    assert sorted(map(int, run_eagerly(store.children(znodes.partitions_path("t"))))) == list(range(count))


async def test_a_deletion_that_others_overtake_again_and_again_is_not_reported_as_done() -> None:
    class Overtaken(TreeSession):
        async def commit(self, ops: Sequence[Op]) -> None:
            data, _ = await self.get(znodes.topic_path("t"))
            await self.set(znodes.topic_path("t"), data)
            await super().commit(ops)

    tree = SharedTree()
    await (await broker(tree, 1, random.Random(1))).create("t", 2)
    with pytest.raises(StoreFailed, match="try again"):
        await topic_writer.delete_nodes(Overtaken(tree), "t")
    await tree.close()
