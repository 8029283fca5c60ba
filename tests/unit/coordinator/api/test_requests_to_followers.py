"""What a broker answers to requests that only a partition's leader serves, and how acks=all waits for followers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, World, answered, batch, produce_request
from tests.unit.coordinator.api.data_world import produces as produce_batches
from tests.unit.coordinator.api.test_fetch_by_followers import EPOCH, Cluster, placed

from rota.coordinator.api.delete_records import delete_records
from rota.coordinator.api.list_offsets import list_offsets
from rota.coordinator.api.offset_for_leader_epoch import offset_for_leader_epoch
from rota.coordinator.api.produce import produce
from rota.coordinator.scheduling.delayed_reply import DelayedReply
from rota.protocol.errors import ErrorCode
from rota.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from rota.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rota.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


def lists(world: World) -> Any:
    return listed(world).error_code


def listed(world: World, replica_id: int = -1, leader_epoch: int = -1) -> Any:
    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=leader_epoch, timestamp=-1)
    topic = ListOffsetsTopic(name="t", partitions=(partition,))
    return (
        world.serve(list_offsets, ListOffsetsRequest(replica_id=replica_id, topics=(topic,)), 7).topics[0].partitions[0]
    )


def looks_for_an_epoch(world: World) -> Any:
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=(partition,)),))
    return world.serve(offset_for_leader_epoch, request, 4).topics[0].partitions[0].error_code


def deletes(world: World) -> Any:
    return deletion(delete(world, 0))[0]


def delete(world: World, offset: int) -> Any:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="t", partitions=(partition,))
    return world.serve(delete_records, DeleteRecordsRequest(topics=(topic,), timeout_ms=1000), 2)


def deletion(response: Any) -> tuple[int, int]:
    """(error, low watermark)"""
    (result,) = response.topics[0].partitions
    return result.error_code, result.low_watermark


def produces(world: World, acks: int = -1) -> Any:
    return send(world, acks).responses[0].partition_responses[0].error_code


def send(world: World, acks: int = -1) -> Any:
    return world.serve(produce, produce_request(batch(b"a"), acks=acks), 9)


@pytest.mark.parametrize(
    "send_request", [lists, looks_for_an_epoch, deletes, produces, lambda world: produces(world, 1)]
)
def test_only_the_leader_answers(send_request: Any) -> None:
    world = Cluster(leader=1)
    assert send_request(world) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.partition().log.log_end_offset == 0


def test_lo3_a_follower_tells_a_debugging_consumer_the_end_of_its_log() -> None:
    world = Cluster()
    world.produce(b"a", b"b")
    world.partition().apply(placed(leader=1, leader_epoch=EPOCH + 1), NOW_MS)
    found = listed(world, replica_id=-2, leader_epoch=EPOCH + 1)
    assert (found.error_code, found.offset, found.leader_epoch) == (ErrorCode.NONE, 2, EPOCH + 1)
    assert world.partition().high_watermark == 0
    assert listed(world, replica_id=-2, leader_epoch=EPOCH).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert listed(world, replica_id=2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_acks_all_waits_until_every_replica_in_sync_has_the_records() -> None:
    world = Cluster()
    reply = send(world)
    assert isinstance(reply, DelayedReply)
    assert send(world, acks=1).responses[0].partition_responses[0].base_offset == 1
    world.follow(1)
    world.follow(0, follower=2)
    assert not reply.answered
    world.follow(1, follower=2)
    assert answered(reply).responses[0].partition_responses[0].base_offset == 0


def test_a_leader_that_is_replaced_does_not_acknowledge() -> None:
    world = Cluster()
    reply = send(world)
    world.partition().apply(placed(leader=1, leader_epoch=EPOCH + 1), NOW_MS)
    assert answered(reply).responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_with_too_few_replicas_in_sync_nothing_is_written() -> None:
    world = Cluster(min_insync_replicas="2")
    world.partition().apply(placed(isr=(0,)), NOW_MS)
    assert produces(world) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.partition().log.log_end_offset == 0
    assert produces(world, acks=1) == ErrorCode.NONE
    assert world.partition().high_watermark == 0


def test_a_wait_for_followers_ends_at_the_timeout_of_the_request() -> None:
    """The records stay in the log: REQUEST_TIMED_OUT does not say that they are lost."""
    world = Cluster()
    reply = send(world)
    world.after(999)  # the request's timeout is 1,000 ms
    assert not reply.answered
    world.after(1)
    response = answered(reply).responses[0].partition_responses[0]
    assert (response.error_code, response.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert world.partition().log.log_end_offset == 1


def test_records_are_not_acknowledged_while_the_isr_is_too_small() -> None:
    """NOT_ENOUGH_REPLICAS is for records that were not appended; these were, and wait for the ISR to grow again."""
    world = Cluster(min_insync_replicas="2")
    world.partition().apply(placed(isr=(0, 1)), NOW_MS)
    reply = send(world)
    world.partition().isr_changed(EPOCH, (0,), NOW_MS)
    assert (reply.answered, world.partition().high_watermark) == (False, 0)
    assert produces(world) == ErrorCode.NOT_ENOUGH_REPLICAS
    world.partition().isr_changed(EPOCH, (0, 2), NOW_MS)
    world.follow(1, follower=2)
    assert answered(reply).responses[0].partition_responses[0].base_offset == 0


def test_a_follower_that_leaves_the_isr_is_not_waited_for() -> None:
    world = Cluster()
    reply = send(world)
    world.follow(1)
    assert not reply.answered
    world.partition().isr_changed(EPOCH, (0, 1), NOW_MS)
    assert answered(reply).responses[0].partition_responses[0].base_offset == 0


def test_the_slowest_partition_delays_the_response_of_all() -> None:
    """A response goes out when its last partition is decided; each has its own code."""
    world = Cluster()
    world.topic("quick", assignment=[(0, (0, 1, 2))])
    world.partition("quick").apply(placed(), NOW_MS)
    reply = world.serve(produce, produce_batches([("t", 0, batch(b"a")), ("quick", 0, batch(b"b"))]), 9)
    world.partition("quick").isr_changed(EPOCH, (0,), NOW_MS)  # its followers are not waited for any longer
    assert (reply.answered, world.partition("quick").high_watermark) == (False, 1)
    world.after(1000)
    codes = [topic.partition_responses[0].error_code for topic in answered(reply).responses]
    assert codes == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]
