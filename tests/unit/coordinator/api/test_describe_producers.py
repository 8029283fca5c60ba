from __future__ import annotations

from typing import Any

from tests.unit.coordinator.api.data_world import NOW_MS, World, batch

from rota.coordinator.api.describe_producers import describe_producers
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_producers import DescribeProducersRequest, PartitionResponse, TopicRequest


def send_request(world: World, name: str = "t", index: int = 0) -> PartitionResponse:
    request = DescribeProducersRequest(topics=(TopicRequest(name=name, partition_indexes=(index,)),))
    response: Any = world.serve(describe_producers, request, 0)
    (topic,) = response.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index) == (name, index)
    return partition  # type: ignore[no-any-return]


def test_an_idempotent_producer_is_known_by_its_last_batch() -> None:
    world = World()
    world.topic()
    world.append(b"from nobody in particular")
    assert send_request(world).active_producers == ()
    sent = batch(b"a", b"b", producer_id=7, producer_epoch=2, base_sequence=0)
    world.partition().append(sent, world.now_ms)
    (state,) = send_request(world).active_producers
    assert (state.producer_id, state.producer_epoch) == (7, 2)
    assert (state.last_sequence, state.last_timestamp) == (1, NOW_MS)
    assert (state.coordinator_epoch, state.current_txn_start_offset) == (-1, -1)


def test_partitions_that_are_not_here() -> None:
    world = World()
    world.topic()
    assert send_request(world, index=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert send_request(world, index=7).error_message is None
    unknown = send_request(world, "nope")
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.error_message == "This server does not host this topic-partition."
    wrong = send_request(world, "bad name!")
    assert wrong.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert wrong.error_message == (
        "Topic name is invalid: 'bad name!' contains one or more characters other than ASCII alphanumerics, "
        "'.', '_' and '-'"
    )
    world.partition().fail("the disk is gone")
    assert send_request(world).error_code == ErrorCode.KAFKA_STORAGE_ERROR
