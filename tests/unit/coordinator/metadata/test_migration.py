from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.image import NOT_REGISTERED
from rota.coordinator.metadata.migration import MIGRATED_SUFFIX, migrate
from rota.coordinator.metadata.producer_ids import BLOCK_IDS, ProducerIds
from rota.coordinator.metadata.shared_tree import SharedTree
from rota.coordinator.metadata.store import StoreFailed
from rota.coordinator.metadata.topic import Topic
from rota.coordinator.metadata.topics import Topics
from rota.coordinator.metadata.tree_session import TreeSession

IDS = count(1)


def fresh_uuid() -> bytes:
    return next(IDS).to_bytes(16, "big")


async def left_alone(journal: Path) -> list[Topic]:
    """The topics of a broker that was alone, in its journal."""
    store = EmbeddedStore(journal)
    topics = Topics(store, broker_id=2, fresh_uuid=fresh_uuid)
    await topics.load()
    await topics.create("a", 3, configs={"retention.ms": "1"})
    await topics.create("b")
    assert await ProducerIds(store, broker_id=2).take() == 0
    await store.close()
    return list(topics)


async def cluster() -> Topics:
    topics = Topics(TreeSession(SharedTree()), broker_id=2, fresh_uuid=fresh_uuid, watch=lambda event: None)
    topics.broker_epoch = NOT_REGISTERED
    await topics.load()
    return topics


async def test_topics_keep_ids_configs_and_partitions(tmp_path: Path) -> None:
    journal = tmp_path / "metadata.journal"
    before = await left_alone(journal)
    topics = await cluster()
    assert await migrate(journal, topics) == 2
    for topic in before:
        after = topics.by_id(topic.topic_id)
        assert after is not None
        assert (after.name, after.configs) == (topic.name, topic.configs)
        assert [state.leader_epoch for state in after.partitions] == [1] * len(topic.partitions)
        assert {(state.replicas, state.isr) for state in after.partitions} == {((2,), (2,))}
        assert not any(topics.is_leader(state) for state in after.partitions), "it leads when it is elected, not before"
    assert not journal.exists()
    assert journal.with_name(journal.name + MIGRATED_SUFFIX).exists()
    assert await migrate(journal, topics) == 0
    assert await ProducerIds(topics.store, broker_id=2).take() == BLOCK_IDS


async def test_an_interrupted_migration_continues(tmp_path: Path) -> None:
    journal = tmp_path / "metadata.journal"
    (first, second) = await left_alone(journal)
    topics = await cluster()
    await topics.add(first)
    assert await migrate(journal, topics) == 1
    assert topics.by_id(second.topic_id) is not None
    assert len(topics) == 2


async def test_a_larger_block_of_producer_ids_stays(tmp_path: Path) -> None:
    journal = tmp_path / "metadata.journal"
    await left_alone(journal)
    topics = await cluster()
    for _ in range(3):
        last = await ProducerIds(topics.store, broker_id=1).take()
    await migrate(journal, topics)
    assert await ProducerIds(topics.store, broker_id=2).take() == last + BLOCK_IDS


async def test_another_topic_of_the_same_name_stops_it_and_the_journal_stays(tmp_path: Path) -> None:
    journal = tmp_path / "metadata.journal"
    await left_alone(journal)
    topics = await cluster()
    await topics.add(Topic(name="b", topic_id=fresh_uuid(), partitions=(await left_b(tmp_path)).partitions))
    with pytest.raises(StoreFailed, match="topic b of this broker's folder cannot be taken over"):
        await migrate(journal, topics)
    assert journal.exists()


async def left_b(tmp_path: Path) -> Topic:
    return (await left_alone(tmp_path / "other.journal"))[1]
