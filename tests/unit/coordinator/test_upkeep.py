"""Upkeep on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from tests.unit.coordinator.api.data_world import World, batch

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.storage import Memory
from rota.coordinator.upkeep import COMPACTION_PAUSE_MS, ROUND_MS, TIDY_EVERY_MS, Upkeep


class Tidied(Memory):
    """Counts, and fails on request."""

    def __init__(self) -> None:
        self.times = 0
        self.fails = False

    def tidy(self) -> None:
        self.times += 1
        if self.fails:
            raise StorageFailed("the disk is full")


class Kept(World):
    """A world with upkeep."""

    def __init__(self) -> None:
        super().__init__()
        node = self.node
        self.storage, self.durability = Tidied(), node.durability
        self.upkeep = Upkeep(node.partitions, self.storage, self.durability, node.timers, node.now_ms, node.wall_ms)
        self.upkeep.start()

    async def rounds(self, count: int, wait_ms: int = ROUND_MS) -> None:
        for _ in range(count):
            self.after(wait_ms)
            await asyncio.sleep(0)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():
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


async def test_the_folder_is_tidied_once_a_minute_and_failures_are_tried_again() -> None:
    world = Kept()
    world.storage.fails = True
    await world.rounds(TIDY_EVERY_MS // ROUND_MS - 1)
    assert world.storage.times == 0
    await world.rounds(1)
    await world.until(lambda: world.storage.times == 1)
    await world.upkeep.stop()
    world.upkeep.start()
    await world.rounds(TIDY_EVERY_MS // ROUND_MS)
    await world.until(lambda: world.storage.times == 2)
    await world.end()


async def test_old_segments_go_and_a_compaction_goes_on_after_a_breath() -> None:
    world = Kept()
    world.topic("t", 1, cleanup_policy="compact")
    partition = world.partition("t")
    partition.log.config = replace(partition.log.config, segment_bytes=1 << 16)
    for _ in range(2_000):
        partition.append(batch(bytes(1_000), key=b"k"), world.now_ms)
    before = partition.log.size_bytes
    await world.rounds(2)
    assert partition.log.size_bytes > before // 2
    await world.rounds(100, COMPACTION_PAUSE_MS)
    assert partition.log.size_bytes < before // 10
    await world.end()


async def test_nothing_rings_after_the_stop() -> None:
    world = Kept()
    await world.end()
    assert len(world.node.timers) == 0
