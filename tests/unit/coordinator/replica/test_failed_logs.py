from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest
from structlog.testing import capture_logs

from rota.coordinator.log.contract import StorageFailed
from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.store import ChangedByOthers, StoreFailed
from rota.coordinator.replica import failed_logs
from rota.coordinator.replica.failed_logs import FailedLogs
from rota.coordinator.replica.partition import Partition


class World:
    """Partitions that are offline; each write to the store waits for `release`."""

    def __init__(self, count: int = 2) -> None:
        self.here = [Partition("t", bytes(16), index, 3, MemoryLog(), broker_id=1) for index in range(count)]
        for partition in self.here:
            partition.fail("the disk is full")
        self.left, self.found = list[int](), list[int]()
        self.is_unreachable, self.release = False, asyncio.Event()
        self.contested, self.left_before = set[int](), set[int]()
        self.requested = 0
        self.noted, self.cannot_write = list[list[int]](), False
        self.failed = FailedLogs(
            self.hand_over, lambda partition: self.found.append(partition.index), self.is_here, self.note
        )

    async def hand_over(
        self, _name: str, index: int, *, lost_records: bool = False, cannot_recover: bool = False
    ) -> None:
        self.requested += 1
        await self.release.wait()
        if self.is_unreachable and index not in self.left_before:
            raise StoreFailed("no answer")
        if index in self.contested:
            raise ChangedByOthers("others change it all the time")
        self.left.append(index)

    def note(self, failed: Collection[tuple[str, int]]) -> None:
        if self.cannot_write:
            raise StorageFailed("no space left on device")
        self.noted.append(sorted(index for _, index in failed))

    def is_here(self, partition: Partition) -> bool:
        return partition in self.here

    async def round(self) -> None:
        self.failed.found(self.here)
        assert self.failed.task is not None
        await asyncio.gather(*self.failed.tasks)


async def test_while_the_store_cannot_be_reached_it_is_tried_again() -> None:
    """R1."""
    world = World()
    world.release.set()
    with capture_logs() as lines:
        for world.is_unreachable in (True, True, False):
            await world.round()
    assert (world.left, world.found) == ([0, 1], [0, 1])
    assert [(line["log_level"], line["reason"]) for line in lines] == [("warning", "no answer"), ("info", "no answer")]


async def test_elr2_which_logs_have_failed_is_written_down_until_they_are_online_again() -> None:
    """While it cannot be written it is tried again, and they leave their ISRs all the same."""
    world = World()
    world.release.set()
    with capture_logs() as lines:
        for world.cannot_write in (True, True, False, False):
            await world.round()
    assert (world.noted, world.left) == ([[0, 1]], 4 * [0, 1])
    assert [line["reason"] for line in lines] == 2 * ["no space left on device"]
    for offline in (world.here[1:], []):
        world.failed.found(offline)
        await asyncio.gather(*world.failed.tasks)
    assert world.noted == [[0, 1], [1], []]
    world.failed.found([])
    assert world.failed.tasks == []


async def test_many_leave_their_isrs_at_once_however_slow_the_store_is() -> None:
    """R1. A disk that breaks takes all of them offline."""
    world = World(failed_logs.AT_ONCE_MAX + 2)
    world.failed.found(world.here)
    await asyncio.sleep(0)
    assert world.requested == failed_logs.AT_ONCE_MAX
    world.release.set()
    assert world.failed.task is not None
    await world.failed.task
    assert world.left == list(range(failed_logs.AT_ONCE_MAX + 2))


async def test_one_that_others_change_all_the_time_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """R1. Where the store does not answer, the round ends."""
    monkeypatch.setattr(failed_logs, "AT_ONCE_MAX", 2)
    world = World(6)
    world.release.set()
    world.contested = {0}
    with capture_logs() as lines:
        await world.round()
    assert (world.left, [line["reason"] for line in lines]) == ([1, 2, 3, 4, 5], ["others change it all the time"])
    world.contested, world.is_unreachable, world.requested = set(), True, 0
    world.left_before = {0}  # nothing is written for it
    await world.round()
    assert world.requested == 2


async def test_the_loop_does_not_wait_for_thousands_that_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_logs, "AT_ONCE_MAX", 1)
    world = World(4)
    world.release.set()
    world.failed.found(world.here)
    for turn in range(1, 5):
        await asyncio.sleep(0)
        assert world.left == list(range(turn))
    await asyncio.gather(*world.failed.tasks)


async def test_who_is_online_again_or_removed_meanwhile_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_logs, "AT_ONCE_MAX", 1)
    world = World(4)
    offline = list(world.here)
    world.failed.found(offline)
    await asyncio.sleep(0)
    world.failed.online_again(offline[1])
    world.here.remove(offline[2])
    world.release.set()
    assert world.failed.task is not None
    await world.failed.task
    assert world.left == [0, 3]


async def test_a_failure_after_another_one_is_found_anew() -> None:
    world = World(1)
    world.release.set()
    for _ in range(2):
        await world.round()
    assert world.found == [0]
    world.failed.online_again(world.here[0])
    await world.round()
    assert world.found == [0, 0]
