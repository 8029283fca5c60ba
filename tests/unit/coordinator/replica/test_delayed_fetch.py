from __future__ import annotations

import asyncio

import pytest
from tests.unit.coordinator.api.data_world import World, batch

from rota.coordinator.replica.delayed_fetch import DelayedFetch
from rota.protocol.records.control import Marker

BATCH_BYTES = len(batch(b"a"))


@pytest.fixture
def world() -> World:
    world = World()
    world.topic(partitions=2)
    return world


def poll(
    world: World,
    bytes_missing: int,
    *,
    bytes_max: int = 1 << 20,
    wait_ms: int = 500,
    read_committed: bool = False,
) -> DelayedFetch[int]:
    """A poll of both partitions whose answer says how often it was made."""
    made: list[int] = []

    def answer() -> int:
        made.append(1)
        return len(made)

    watches = [(world.partition(index=index), 0, bytes_max) for index in range(2)]
    deadline_ms = world.now_ms + wait_ms
    return DelayedFetch(world.node.timers, deadline_ms, bytes_missing, watches, answer, read_committed=read_committed)


def left_nothing(world: World) -> bool:
    return len(world.node.timers) == 0 and not any(world.partition(index=index)._watches for index in range(2))


async def test_an_append_answers_in_the_next_turn(world: World) -> None:
    waiting = poll(world, 1).delayed_reply
    world.append(b"a")
    assert not waiting.answered
    await asyncio.sleep(0)
    assert (waiting.value, left_nothing(world)) == (1, True)


async def test_appends_of_one_turn_are_answered_once(world: World) -> None:
    waiting = poll(world, 1).delayed_reply
    world.append(b"a")
    world.append(b"b", index=1)
    world.append(b"c")
    world.after(1000)
    await asyncio.sleep(0)
    assert (waiting.value, left_nothing(world)) == (1, True)


async def test_bytes_add_up_over_partitions(world: World) -> None:
    waiting = poll(world, 3 * BATCH_BYTES).delayed_reply
    world.append(b"a")
    world.append(b"a", index=1)
    await asyncio.sleep(0)
    assert not waiting.answered
    world.append(b"a")
    await asyncio.sleep(0)
    assert waiting.answered


async def test_a_partition_counts_for_no_more_than_it_may_give(world: World) -> None:
    waiting = poll(world, 2 * BATCH_BYTES, bytes_max=BATCH_BYTES).delayed_reply
    for _ in range(5):
        world.append(b"a")
    await asyncio.sleep(0)
    assert not waiting.answered
    world.append(b"a", index=1)
    await asyncio.sleep(0)
    assert waiting.answered


async def test_the_deadline_answers_with_the_records_available(world: World) -> None:
    waiting = poll(world, 1_000_000).delayed_reply
    world.append(b"a")
    world.after(499)
    await asyncio.sleep(0)
    assert not waiting.answered
    world.after(1)
    assert (waiting.value, left_nothing(world)) == (1, True)


async def test_a_failed_partition_answers(world: World) -> None:
    waiting = poll(world, 1_000_000).delayed_reply
    world.partition(index=1).fail("the disk is gone")
    await asyncio.sleep(0)
    assert (waiting.value, left_nothing(world)) == (1, True)


async def test_an_abandoned_fetch_leaves_no_timer_and_no_watch(world: World) -> None:
    waiting = poll(world, 1).delayed_reply
    world.append(b"a")
    waiting.abandon()
    await asyncio.sleep(0)
    world.after(1000)
    assert (waiting.answered, left_nothing(world)) == (False, True)


async def test_the_connection_is_held_back_meanwhile(world: World) -> None:
    assert poll(world, 1).delayed_reply.mutes


async def test_f17_a_request_behind_it_ends_the_wait(world: World) -> None:
    waiting = poll(world, 1).delayed_reply
    waiting.expedite()
    assert not waiting.answered
    await asyncio.sleep(0)
    assert (waiting.value, left_nothing(world)) == (1, True)
    waiting.expedite()  # an answered one has nothing to expedite


async def test_an_exception_in_an_answer_is_raised_to_its_sender(world: World) -> None:
    def mistaken() -> int:
        raise RuntimeError("nobody wrote a test for this")

    waiting = DelayedFetch(
        world.node.timers, world.now_ms + 500, 1, [(world.partition(), 0, 1)], mistaken
    ).delayed_reply
    world.append(b"a")
    await asyncio.sleep(0)
    assert isinstance(waiting.value, RuntimeError)
    assert left_nothing(world)


async def test_records_of_an_open_transaction_do_not_answer_a_read_committed_fetch(world: World) -> None:
    partition = world.partition()
    verification = partition.log.producers.begin_verification(7, 0, 0, 0)
    first = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    waiting = poll(world, 1, read_committed=True).delayed_reply
    partition.append(first, 0, verification)
    world.append(b"behind an open transaction")
    await asyncio.sleep(0)
    assert not waiting.answered
    partition.append_marker(Marker(True, 0), producer_id=7, producer_epoch=0, now_ms=0)
    await asyncio.sleep(0)
    assert waiting.answered
    assert left_nothing(world)
    partition.append(batch(b"b", producer_id=7, producer_epoch=0, base_sequence=1), 0)
    failing = poll(world, 1, read_committed=True).delayed_reply
    partition.fail("the disk is gone")
    await asyncio.sleep(0)
    assert failing.answered
