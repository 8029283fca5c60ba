"""Upkeep on a clock that the test moves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from tests.unit.coordinator.api.data_world import World, batch

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.segment_storage import SEGMENTS_AT_ONCE_MAX
from rota.coordinator.metadata import eager_tasks
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica.partition import Partition
from rota.coordinator.storage import Memory
from rota.coordinator.upkeep import CHECKPOINT_EVERY_MS, COMPACTION_PAUSE_MS, ROUND_MS, Upkeep
from rota.protocol.errors import ErrorCode


class Checkpointed(Memory):
    """Counts its checkpoints and the threads that write them; fails on request."""

    def __init__(self) -> None:
        self.times = 0
        self.threads: set[int] = set()
        self.fails = False
        self.many_unsynced: Callable[[], None] | None = None

    def when_many_unsynced(self, call: Callable[[], None]) -> None:
        self.many_unsynced = call

    def begin_checkpoint(self) -> Callable[[], None]:
        return self._write

    def _write(self) -> None:
        self.times += 1
        self.threads.add(threading.get_ident())
        if self.fails:
            raise StorageFailed("the disk is full")


class Kept(World):
    """A world with upkeep."""

    def __init__(self, retention_every_ms: int = 0, wall_behind_ms: int = 0) -> None:
        super().__init__()
        self.wall_behind_ms = wall_behind_ms
        node = self.node
        self.storage, self.durability = Checkpointed(), node.durability
        self.upkeep = Upkeep(
            node.partitions,
            self.storage,
            self.durability,
            node.timers,
            node.now_ms,
            lambda: self.now_ms - self.wall_behind_ms,
            retention_every_ms=retention_every_ms,
        )
        self.upkeep.start()

    async def rounds(self, count: int, wait_ms: int = ROUND_MS) -> None:
        for _ in range(count):
            self.after(wait_ms)
            await asyncio.sleep(0)

    async def until(self, holds: Callable[[], bool], wait_ms: int = 0) -> None:
        """Turn the loop, and the clock by `wait_ms` each time, until it holds: threads take their own time."""
        async with asyncio.timeout(20):
            while not holds():
                self.after(wait_ms)
                await asyncio.sleep(0.001)

    async def end(self) -> None:
        await self.upkeep.stop()
        await self.durability.drained()
        self.durability.close()


async def test_a_topic_with_flush_ms_is_flushed_in_time() -> None:
    world = Kept()
    world.topic("t", 1, flush_ms="2500")
    world.topic("u", 1)
    for name in ("t", "u"):
        world.append(b"a", name=name)
    log = world.partition("t").log
    await world.rounds(3)
    assert log.unflushed_messages == 1
    await world.rounds(1)
    await world.until(lambda: log.unflushed_messages == 0)
    assert world.partition("u").log.unflushed_messages == 1
    await world.end()


async def test_the_wait_begins_with_the_first_record_that_is_not_flushed() -> None:
    world = Kept()
    world.topic("t", 1, flush_ms="2500")
    await world.rounds(10)
    world.append(b"a")
    log = world.partition("t").log
    log.flush()
    await world.rounds(10)
    world.append(b"b")
    await world.rounds(3)
    assert log.unflushed_messages == 1
    await world.rounds(1)
    await world.until(lambda: log.unflushed_messages == 0)
    await world.end()


async def test_an_offline_partition_is_left_alone() -> None:
    world = Kept()
    world.topic("t", 1, flush_ms="0")
    world.append(b"a")
    world.partition("t").fail("the disk is gone")
    await world.rounds(3)
    await world.end()
    assert world.partition("t").offline == "the disk is gone"


async def test_checkpoints_are_written_once_a_minute_in_a_thread_and_failures_are_tried_again() -> None:
    world = Kept()
    world.storage.fails = True
    await world.rounds(CHECKPOINT_EVERY_MS // ROUND_MS - 1)
    assert world.storage.times == 0
    await world.rounds(1)
    await world.until(lambda: world.storage.times == 1)
    await world.upkeep.stop()
    world.upkeep.start()
    await world.rounds(CHECKPOINT_EVERY_MS // ROUND_MS)
    await world.until(lambda: world.storage.times == 2)
    assert threading.get_ident() not in world.storage.threads
    await world.end()


def small_segments(world: Kept, batches: int) -> Partition:
    """A compacted partition that has something to compact."""
    world.topic("t", 1, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    partition = world.partition("t")
    partition.log.config = replace(partition.log.config, segment_bytes=1 << 16)
    for _ in range(batches):
        partition.append(batch(bytes(1_000), key=b"k"), world.now_ms)
    return partition


async def test_a_compaction_works_in_threads_and_pauses_between_its_slices() -> None:
    world = Kept()
    partition = small_segments(world, 2_000)
    before_bytes = partition.log.size_bytes
    await world.until(lambda: ("upkeep", "pause") in world.node.timers._heap, ROUND_MS)
    assert partition.log.size_bytes == before_bytes
    await world.until(lambda: partition.log.size_bytes < before_bytes // 10, COMPACTION_PAUSE_MS)
    assert partition.high_watermark == 2_000
    await world.end()


async def test_rt4_what_is_overdue_is_compacted_however_little_is_dirty() -> None:
    world = Kept()
    world.topic("t", 1, cleanup_policy="compact", min_cleanable_dirty_ratio="1", max_compaction_lag_ms="5000")
    partition = world.partition("t")
    for value in (b"1", b"2"):
        partition.append(batch(value, key=b"k", timestamp=world.now_ms), world.now_ms)
    before_bytes = partition.log.size_bytes
    await world.rounds(5)
    partition.append(batch(b"3", key=b"k", timestamp=world.now_ms + 1), world.now_ms + 1)
    assert partition.log.segment_count == 2
    await world.until(lambda: partition.log.size_bytes <= before_bytes, ROUND_MS)
    await world.end()


async def test_records_that_are_not_committed_are_not_compacted() -> None:
    """Law L1."""
    world = Kept()
    world.topic("t", 1, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    partition = world.partition("t")
    partition.log.config = replace(partition.log.config, segment_bytes=1 << 14)
    broker_id, pausing = partition.state.broker_id, ("upkeep", "pause")
    both = broker_id, broker_id + 1
    epoch = partition.leader_epoch + 1
    placed = PartitionState(index=0, leader=broker_id, replicas=both, isr=both, leader_epoch=epoch, version=0)
    partition.apply(placed, world.now_ms)
    for _ in range(200):
        partition.append(batch(bytes(1_000), key=b"k"), world.now_ms)
    for _ in range(4):
        await world.rounds(1)
        await world.until(lambda: not world.upkeep._tasks or pausing in world.node.timers._heap)
        assert pausing not in world.node.timers._heap
    partition.follower_fetched(broker_id + 1, 200, world.now_ms)
    await world.until(lambda: pausing in world.node.timers._heap, ROUND_MS)
    await world.end()


async def test_rt3_retention_deletes_and_commits_nothing_that_a_follower_in_sync_lacks() -> None:
    """Laws L1, L3. It may be elected: offsets that were acknowledged would get other records."""
    world = Kept()
    world.topic("t", 1, retention_ms="1000")
    partition = world.partition("t")
    broker_id = partition.state.broker_id
    both = broker_id, broker_id + 1
    epoch = partition.leader_epoch + 1
    placed = PartitionState(index=0, leader=broker_id, replicas=both, isr=both, leader_epoch=epoch, version=0)
    partition.apply(placed, world.now_ms)
    world.append(b"a")
    outcomes: list[ErrorCode] = []
    partition.when_committed(1, world.now_ms + 3_600_000, outcomes.append)
    await world.rounds(8)
    assert (partition.log.log_start_offset, partition.high_watermark, outcomes) == (0, 0, [])
    partition.follower_fetched(broker_id + 1, 1, world.now_ms)
    await world.rounds(8)
    assert (partition.log.log_start_offset, partition.high_watermark, outcomes) == (1, 1, [ErrorCode.NONE])
    await world.end()


async def test_a_stop_ends_a_compaction_after_its_slice() -> None:
    world = Kept()
    partition = small_segments(world, 2_000)
    await world.until(lambda: ("upkeep", "pause") in world.node.timers._heap, ROUND_MS)
    await world.end()
    assert partition.high_watermark == 2_000


async def test_deleting_a_topic_ends_its_compaction() -> None:
    world = Kept()
    small_segments(world, 500)
    await world.until(lambda: ("upkeep", "pause") in world.node.timers._heap, ROUND_MS)
    eager_tasks.run_eagerly(world.node.topics.delete("t"))
    await world.until(lambda: "maintain" not in world.upkeep._tasks, COMPACTION_PAUSE_MS)
    await world.end()


async def test_retention_reaches_every_partition_of_a_topic() -> None:
    world = Kept()
    await world.node.topics.create("t", 40, configs={"retention.ms": "1000"})
    for index in range(40):
        world.append(b"a", index=index)
    await world.rounds(10)
    assert [world.partition("t", index).log.log_start_offset for index in range(40)] == [1] * 40
    await world.end()


def old_segments(world: Kept, count: int) -> Partition:
    """A partition with so many segments that are too old in the next round, and the active one."""
    world.topic("t", 1, retention_ms="500")
    partition = world.partition("t")
    partition.log.config = replace(partition.log.config, segment_bytes=1_500)
    for _ in range(count + 1):
        partition.append(batch(bytes(1_000)), world.now_ms)
    return partition


async def test_retention_pauses_after_some_segments() -> None:
    world = Kept()
    partition = old_segments(world, 2 * SEGMENTS_AT_ONCE_MAX)
    await world.until(lambda: ("upkeep", "pause") in world.node.timers._heap, ROUND_MS)
    assert partition.state.log_start_offset == partition.log_start_offset == SEGMENTS_AT_ONCE_MAX
    await world.until(lambda: partition.log_start_offset == 2 * SEGMENTS_AT_ONCE_MAX + 1, COMPACTION_PAUSE_MS)
    assert partition.state.log_start_offset == 2 * SEGMENTS_AT_ONCE_MAX + 1
    await world.end()


@pytest.mark.parametrize("ends", ["stop", "failure", "deletion"])
async def test_retention_ends_with_the_partition_or_the_broker(ends: str) -> None:
    world = Kept()
    partition = old_segments(world, 2 * SEGMENTS_AT_ONCE_MAX)
    of = partition.log
    await world.until(lambda: ("upkeep", "pause") in world.node.timers._heap, ROUND_MS)
    if ends == "failure":
        partition.fail("the disk is gone")
    elif ends == "deletion":
        eager_tasks.run_eagerly(world.node.topics.delete("t"))
    if ends != "stop":
        await world.until(lambda: "maintain" not in world.upkeep._tasks, COMPACTION_PAUSE_MS)
    await world.end()
    assert of.log_start_offset == SEGMENTS_AT_ONCE_MAX


async def test_old_records_stay_until_the_next_look_for_them() -> None:
    world = Kept(retention_every_ms=60_000)
    world.topic("t", 1, retention_ms="1000")
    world.append(b"a")
    await world.rounds(55)
    assert world.partition().log.log_start_offset == 0
    await world.rounds(15)
    assert world.partition().log.log_start_offset == 1
    await world.end()


@pytest.mark.parametrize(("policy", "start"), [("compact,delete", 1), ("compact", 0)])
async def test_old_records_of_a_topic_that_is_compacted_as_well_do_not_wait(policy: str, start: int) -> None:
    """Law RT2. Deleting alone waits, and compacting alone deletes nothing by age."""
    world = Kept(retention_every_ms=86_400_000)
    world.topic("t", 1, retention_ms="1000", cleanup_policy=policy)
    world.append(b"a")
    passes_ms = world.now_ms + 8 * ROUND_MS
    await world.until(lambda: world.now_ms > passes_ms and not world.upkeep._tasks, ROUND_MS // 2)
    assert world.partition().log.log_start_offset == start
    await world.end()


async def test_a_wall_clock_that_steps_back_does_not_hold_up_retention() -> None:
    """Law T5. The rounds are counted in elapsed time; only the age of records is a matter of the wall clock."""
    world = Kept(retention_every_ms=60_000)
    world.topic("t", 1, retention_ms="1000")
    await world.rounds(3)
    world.wall_behind_ms = 86_400_000
    world.append(b"a", timestamp=world.now_ms - world.wall_behind_ms - 1_001)
    await world.rounds(70)
    assert world.partition().log.log_start_offset == 1
    await world.end()


async def test_a_rolled_segment_is_flushed_in_the_next_round() -> None:
    world = Kept()
    partition = small_segments(world, 200)
    assert partition.log.has_unflushed_segments
    await world.rounds(1)
    await world.until(lambda: not partition.log.has_unflushed_segments)
    assert partition.log.unflushed_messages > 0
    await world.end()


async def test_many_rolled_segments_are_flushed_at_once() -> None:
    """Law A8. Also those that are rolled while a flush is under way."""
    world = Kept()
    first, many_unsynced = small_segments(world, 200), world.storage.many_unsynced
    world.topic("u", 1)
    second = world.partition("u")
    second.log.config = first.log.config
    assert many_unsynced is not None
    many_unsynced()
    assert "flush" in world.upkeep._tasks
    await asyncio.sleep(0)  # the flush of the first partition has begun
    for partition in (first, second):
        for _ in range(200):
            partition.append(batch(bytes(1_000), key=b"k"), world.now_ms)
    many_unsynced()
    await world.until(lambda: not (first.log.has_unflushed_segments or second.log.has_unflushed_segments))
    await world.end()
    many_unsynced()
    assert not world.upkeep._tasks


async def test_segments_that_are_rolled_in_the_turn_in_which_a_flush_ends_are_flushed_at_once() -> None:
    """Law A8. The end of a task is called back in the turn after it."""
    world = Kept()
    partition, many_unsynced = small_segments(world, 200), world.storage.many_unsynced
    assert many_unsynced is not None
    world.upkeep._tasks["flush"] = ended = asyncio.create_task(asyncio.sleep(0))
    await asyncio.wait([ended])
    ended.add_done_callback(partial(world.upkeep._ended, "flush"))  # called in the next turn
    many_unsynced()
    await world.until(lambda: not partition.log.has_unflushed_segments)
    await world.end()


async def test_nothing_rings_after_the_stop() -> None:
    world = Kept()
    await world.end()
    assert len(world.node.timers) == 0
