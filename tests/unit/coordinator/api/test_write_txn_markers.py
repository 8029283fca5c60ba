"""Each answer is what Apache Kafka 4.3.1 gave to the same request."""

from __future__ import annotations

from typing import Any

from tests.unit.coordinator.api.data_world import NOW_MS, World, answered, batch

from rota.coordinator.api.describe_producers import describe_producers
from rota.coordinator.api.write_txn_markers import write_txn_markers
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from rota.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from rota.protocol.records.control import Marker, read_marker


def request(
    *partitions: int,
    name: str = "t",
    epoch: int = 0,
    is_commit: bool = True,
    coordinator_epoch: int = 3,
    version: int = 0,
) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=7,
        producer_epoch=epoch,
        transaction_result=is_commit,
        topics=(WritableTxnMarkerTopic(name=name, partition_indexes=partitions or (0,)),),
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
    )
    return WriteTxnMarkersRequest(markers=(marker,))


def codes(response: Any) -> list[tuple[int, ErrorCode]]:
    (marker,) = response.markers
    (topic,) = marker.topics
    return [(each.partition_index, ErrorCode(each.error_code)) for each in topic.partitions]


def world_with_transaction() -> World:
    world = World()
    world.topic(partitions=2)
    partition = world.partition()
    verification = partition.log.producers.begin_verification(7, 0, 0, NOW_MS)
    records = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    partition.append(records, NOW_MS, verification)
    return world


def test_a_marker_ends_the_transaction() -> None:
    world = world_with_transaction()
    partition = world.partition()
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)
    assert codes(world.serve(write_txn_markers, request(0, 1), 1)) == [(0, ErrorCode.NONE), (1, ErrorCode.NONE)]
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 2)
    assert read_marker(partition.read(1, 1000)) == Marker(True, 3)
    send_request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),))
    (state,) = world.serve(describe_producers, send_request, 0).topics[0].partitions[0].active_producers
    assert (state.coordinator_epoch, state.current_txn_start_offset, state.last_sequence) == (3, -1, 0)


def test_partitions_that_cannot_be_written() -> None:
    world = world_with_transaction()
    assert codes(world.serve(write_txn_markers, request(9), 1)) == [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    unknown = world.serve(write_txn_markers, request(0, name="u"), 1)
    assert codes(unknown) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    world.partition(index=1).fail("the disk is gone")
    assert codes(world.serve(write_txn_markers, request(1), 1)) == [(1, ErrorCode.KAFKA_STORAGE_ERROR)]


def test_old_epochs_are_fenced() -> None:
    world = world_with_transaction()
    same = world.serve(write_txn_markers, request(epoch=0, version=2), 2)
    assert codes(same) == [(0, ErrorCode.INVALID_PRODUCER_EPOCH)], "version 2 bumps the epoch at each end"
    assert codes(world.serve(write_txn_markers, request(epoch=1, version=2), 2)) == [(0, ErrorCode.NONE)]
    assert codes(world.serve(write_txn_markers, request(epoch=0), 1)) == [(0, ErrorCode.INVALID_PRODUCER_EPOCH)]
    older = world.serve(write_txn_markers, request(epoch=1, coordinator_epoch=2), 1)
    assert codes(older) == [(0, ErrorCode.TRANSACTION_COORDINATOR_FENCED)]


def test_xl1_a_marker_without_a_producer_is_not_written() -> None:
    world = world_with_transaction()
    for producer_id, epoch in ((-1, 0), (8, -1)):
        wanted = request(epoch=epoch)
        wanted.markers[0].producer_id = producer_id
        assert codes(world.serve(write_txn_markers, wanted, 1)) == [(0, ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert world.partition().log.log_end_offset == 1
    wanted = request(coordinator_epoch=-2)
    wanted.markers[0].producer_id = 8
    fenced = world.serve(write_txn_markers, wanted, 1)
    assert codes(fenced) == [(0, ErrorCode.TRANSACTION_COORDINATOR_FENCED)]


def test_the_response_waits_for_the_commit() -> None:
    world = world_with_transaction()
    partition = world.partition()
    placed = PartitionState(index=0, leader=0, leader_epoch=5, isr=(0, 1), replicas=(0, 1))
    partition.apply(placed, NOW_MS)
    reply = world.serve(write_txn_markers, request(), 1)
    assert isinstance(reply, DelayedReply)
    assert not reply.answered
    assert partition.last_stable_offset == 0, "the marker may be lost"
    partition.follower_fetched(1, 2, NOW_MS)
    assert codes(answered(reply)) == [(0, ErrorCode.NONE)]
    assert partition.last_stable_offset == 2
    follower = PartitionState(index=0, leader=1, leader_epoch=6, isr=(0, 1), replicas=(0, 1))
    partition.apply(follower, NOW_MS)
    assert codes(world.serve(write_txn_markers, request(), 1)) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
