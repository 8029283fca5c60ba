from __future__ import annotations

import pytest

from rota.coordinator.metadata import commits, topic_nodes, znodes
from rota.coordinator.metadata.eager_tasks import run_eagerly
from rota.coordinator.metadata.embedded import EmbeddedStore
from rota.coordinator.metadata.topic import PartitionState, Topic
from rota.coordinator.metadata.topics import Topics

MANY = commits.OPS_PER_COMMIT_MAX


def topic_of(partitions: int) -> Topic:
    states = tuple(PartitionState(index=index, leader=1, replicas=(1,), isr=(1,)) for index in range(partitions))
    return Topic(name="t", topic_id=bytes(15) + b"\1", partitions=states)


def loaded(store: EmbeddedStore) -> Topics:
    topics = Topics(store, broker_id=1, fresh_uuid=lambda: bytes(16))
    run_eagerly(topics.load())
    return topics


def test_a_small_topic_is_one_commit() -> None:
    assert len(list(topic_nodes.creation(topic_of(9)))) == 1
    assert len(list(topic_nodes.growth(topic_of(9), topic_of(9).partitions[4:], 0))) == 1
    assert len(list(topic_nodes.deletion("t", range(9), 0, bytes(16)))) == 1


@pytest.mark.parametrize("partitions", [1, MANY // 2, MANY])
def test_a_topic_is_seen_as_a_whole_or_not_at_all(partitions: int) -> None:
    store = EmbeddedStore()
    loaded(store)
    topic = topic_of(partitions)
    for ops in topic_nodes.creation(topic):
        assert len(ops) <= MANY
        assert len(loaded(store)) == 0
        run_eagerly(store.commit(ops))
    assert loaded(store).get("t") == topic
    version = loaded(store).get("t").version  # type: ignore[union-attr]
    first, *rest = topic_nodes.deletion("t", range(partitions), version, topic.topic_id)
    run_eagerly(store.commit(first))
    assert run_eagerly(store.exists(znodes.topic_id_path("t", topic.topic_id))) is None
    assert len(loaded(store)) == 0
    for ops in rest:
        assert len(ops) <= MANY
        run_eagerly(store.commit(ops))
    assert run_eagerly(store.exists(znodes.topic_path("t"))) is None


def test_growth_in_several_commits_is_seen_at_the_last_one() -> None:
    store = EmbeddedStore()
    loaded(store)
    grown = topic_of(MANY)
    for ops in topic_nodes.creation(topic_of(2)):
        run_eagerly(store.commit(ops))
    for ops in topic_nodes.growth(grown, grown.partitions[2:], 0):
        assert loaded(store).get("t") == topic_of(2)
        run_eagerly(store.commit(ops))
    assert loaded(store).get("t") == grown


def test_a_creation_that_stopped_half_way_is_in_nobodys_way() -> None:
    store = EmbeddedStore()
    topics = loaded(store)
    for ops in list(topic_nodes.creation(topic_of(MANY)))[:-1]:
        run_eagerly(store.commit(ops))
    assert "t" not in topics
    run_eagerly(topics.create("t", 3))
    topic = loaded(store).get("t")
    assert topic is not None
    assert len(topic.partitions) == 3
