from __future__ import annotations

import pytest
from tests.unit.coordinator.api.data_world import World

from rota.coordinator.replica.partition_lookup import Key, PartitionLookup
from rota.protocol.errors import ErrorCode


@pytest.fixture
def world() -> World:
    world = World()
    world.topic("t", partitions=2)
    return world


def test_a_partition_is_found_by_name_and_by_id(world: World) -> None:
    partition_lookup, topic = PartitionLookup(world.node.topics, world.node.partitions), world.node.topics.get("t")
    assert topic is not None
    for name in ("t", topic.topic_id):
        assert partition_lookup.find((name, 1)) is world.partition(index=1)
        assert partition_lookup.missing((name, 1)) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (("nope", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", -1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((bytes(16), 0), ErrorCode.UNKNOWN_TOPIC_ID),
        (((2).to_bytes(16, "big"), 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_missing_topics_and_partitions(world: World, key: Key, code: ErrorCode) -> None:
    partition_lookup = PartitionLookup(world.node.topics, world.node.partitions)
    assert partition_lookup.find(key) is None
    assert partition_lookup.missing(key) is code


def test_a_partition_on_another_broker_is_not_leader_or_follower(world: World) -> None:
    world.node.partitions.close()
    partition_lookup = PartitionLookup(world.node.topics, world.node.partitions)
    assert partition_lookup.missing(("t", 0)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
