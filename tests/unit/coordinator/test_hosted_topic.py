"""An internal topic and its coordinator: creation, and shards that follow the leaders of the partitions."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.hosted_topic import SEGMENT_BYTES_MIN, HostedTopic, TopicSettings
from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import TRANSACTION_STATE
from rota.coordinator.runtime.shard import ShardState


def hosted(world: World, replicas: int = 1, **settings: int) -> HostedTopic:
    defaults = {"partitions": 2, "replication_factor": 3, "segment_bytes": 10}
    return HostedTopic(
        "internal",
        TopicSettings(**{**defaults, **settings}, configs=(("compression.type", "uncompressed"),)),
        world.node.topics,
        world.node.partitions,
        node_id=0,
        replicas_for=lambda configured: min(configured, replicas),
        now_ms=lambda: world.now_ms,
    )


def test_the_topic_is_created_with_its_settings() -> None:
    world = World()
    topic = hosted(world, min_isr=2)
    assert topic.shards == 2
    assert eager_tasks.run_eagerly(topic.ensure())
    assert eager_tasks.run_eagerly(topic.ensure())
    created = world.node.topics.get("internal")
    assert created is not None
    assert dict(created.configs) == {
        "cleanup.policy": "compact",
        "segment.bytes": str(SEGMENT_BYTES_MIN),
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",  # no more than there are replicas
    }
    assert [topic.leader(index) for index in range(2)] == [0, 0]
    assert topic.partition(1).index == 1


def test_a_topic_that_cannot_be_created_is_reported() -> None:
    world = World()
    eager_tasks.run_eagerly(world.node.topics.store.close())
    assert not eager_tasks.run_eagerly(hosted(world).ensure())


def test_a_partition_that_is_not_here_has_no_log() -> None:
    topic = hosted(World())
    with pytest.raises(StorageFailed, match="internal-0 does not live here"):
        topic.partition(0)
    assert topic.leader(0) is None


def test_the_coordinator_leads_the_shards_of_a_new_topic() -> None:
    world = World()
    coordinator = world.node.transactions
    assert {shard.state for shard in coordinator.shards} == {ShardState.DOWN}
    eager_tasks.run_eagerly(world.transaction_topic.ensure())
    assert {shard.state for shard in coordinator.shards} == {ShardState.READY}
    world.transaction_topic.resign()
    assert {shard.state for shard in coordinator.shards} == {ShardState.DOWN}


def test_a_topic_that_exists_is_hosted_at_the_start() -> None:
    world = World()
    eager_tasks.run_eagerly(world.transaction_topic.ensure())
    coordinator = world.node.transactions
    world.transaction_topic.resign()
    world.transaction_topic.host(coordinator)
    assert {shard.state for shard in coordinator.shards} == {ShardState.READY}


def test_a_failed_log_takes_its_shard_alone() -> None:
    world = World()
    eager_tasks.run_eagerly(world.transaction_topic.ensure())
    partition = world.partition(TRANSACTION_STATE, 1)
    partition.offline = "the disk is gone"
    world.transaction_topic.storage_changed(partition)
    assert [shard.state is ShardState.READY for shard in world.node.transactions.shards] == [True, False, True, True]


def test_other_topics_are_not_its_own() -> None:
    world = World()
    eager_tasks.run_eagerly(world.transaction_topic.ensure())
    world.topic("other")
    partition = world.partition("other")
    partition.offline = "gone"
    world.transaction_topic.storage_changed(partition)
    world.transaction_topic.truncated(partition)
    assert {shard.state for shard in world.node.transactions.shards} == {ShardState.READY}


def test_co9_what_is_decided_before_the_shards_are_left_is_written() -> None:
    world = World()
    eager_tasks.run_eagerly(world.transaction_topic.ensure())
    coordinator = world.node.transactions
    coordinator.init_producer("id", 1_000, None)
    partition = world.partition(TRANSACTION_STATE, coordinator.partition_of("id"))
    assert partition.log.log_end_offset == 0
    world.transaction_topic.resign()
    assert partition.log.log_end_offset == 1
