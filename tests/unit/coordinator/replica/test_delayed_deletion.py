"""RE9, by the answers to DeleteRecords at a leader with two followers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, answered
from tests.unit.coordinator.api.test_fetch_by_followers import EPOCH, Cluster, placed
from tests.unit.coordinator.api.test_requests_to_followers import delete, deletion

from rota.protocol.errors import ErrorCode


@pytest.fixture
def world() -> Cluster:
    """Three committed records, which both followers have."""
    world = Cluster()
    world.produce(b"a", b"b", b"c")
    for follower in (1, 2):
        world.follow(3, follower, log_start_offset=0)
    return world


def test_a_deletion_waits_until_every_live_replica_has_deleted_the_records(world: Cluster) -> None:
    reply = delete(world, 2)
    assert world.partition().log_start_offset == 2
    world.follow(3, log_start_offset=2)
    world.follow(3, follower=2, log_start_offset=1)
    assert not reply.answered
    world.follow(3, follower=2, log_start_offset=2)
    assert deletion(answered(reply)) == (ErrorCode.NONE, 2)
    assert not world.partition()._start_watches


def test_a_replica_that_is_not_in_sync_is_waited_for_and_a_dead_one_is_not(world: Cluster) -> None:
    world.partition().apply(placed(isr=(0,)), NOW_MS)
    world.register(0, 1)
    reply = delete(world, 2)
    assert not reply.answered
    world.follow(3, log_start_offset=2)
    assert deletion(answered(reply)) == (ErrorCode.NONE, 2)


def test_a_replica_that_dies_is_waited_for_no_longer(world: Cluster) -> None:
    world.partition().apply(placed(isr=(0,)), NOW_MS)
    reply = delete(world, 2)
    world.follow(3, log_start_offset=2)
    assert not reply.answered
    world.register(0, 1)
    assert deletion(answered(reply)) == (ErrorCode.NONE, 2)


def test_it_ends_at_the_timeout_of_the_request(world: Cluster) -> None:
    reply = delete(world, 2)
    world.after(999)
    assert not reply.answered
    world.after(1)
    assert deletion(answered(reply)) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_a_leader_that_is_replaced_does_not_acknowledge_it(world: Cluster) -> None:
    reply = delete(world, 2)
    world.partition().apply(placed(leader=1, leader_epoch=EPOCH + 1), NOW_MS)
    assert deletion(answered(reply)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_the_followers_are_told_at_once(world: Cluster) -> None:
    fetching = world.send_request(3, log_start_offset=0, min_bytes=1, max_wait_ms=500)
    assert not fetching.answered
    delete(world, 2)
    await asyncio.sleep(0)
    (topic,) = answered(fetching).responses
    assert topic.partitions[0].log_start_offset == 2


@pytest.mark.parametrize(("isr", "elr"), [((0, 1), ()), ((0,), (1,))])
def test_a_dead_replica_that_may_be_elected_is_waited_for(
    world: Cluster, isr: tuple[int, ...], elr: tuple[int, ...]
) -> None:
    """It would bring the records back. Apache Kafka waits for live ones alone."""
    world.partition().apply(replace(placed(isr=isr), elr=elr), NOW_MS)
    world.register(0, 2)
    reply = delete(world, 2)
    world.follow(3, follower=2, log_start_offset=2)
    assert not reply.answered
    world.partition().apply(replace(placed(isr=(0,)), version=1), NOW_MS)
    assert deletion(answered(reply)) == (ErrorCode.NONE, 2)
