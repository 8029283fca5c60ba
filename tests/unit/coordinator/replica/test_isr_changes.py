from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.coordinator.api.data_world import NOW_MS, batch

from rota.coordinator.log.memory import MemoryLog
from rota.coordinator.metadata.store import OutcomeUnknown
from rota.coordinator.metadata.topic import PartitionState
from rota.coordinator.replica import isr_changes
from rota.coordinator.replica.isr_changes import Epochs, IsrChanges
from rota.coordinator.replica.partition import Partition

LAG_MS = 1000


class World:
    """A leader (broker 1) whose follower (broker 2) falls silent; `outcomes` are those of the writes."""

    def __init__(self, *outcomes: bool | Exception) -> None:
        self.outcomes = list(outcomes)
        self.written: list[tuple[str, int, int, tuple[int, ...]]] = []
        self.lacking: list[frozenset[int]] = []
        self.high_watermarks: list[int] = []  # at each write
        self.release = asyncio.Event()
        self.release.set()
        self.registered, self.epochs = {1: 10, 2: 11}, list[Epochs]()
        self.changes = IsrChanges(self.change_isr, lambda: NOW_MS, lambda: dict(self.registered))
        placed = PartitionState(index=0, leader=1, replicas=(2, 1), isr=(2, 1), leader_epoch=3)
        self.partition = Partition(
            "t",
            bytes(16),
            0,
            3,
            MemoryLog(),
            broker_id=1,
            isr_writer=self.changes,
            lag_ms_max=LAG_MS,
            placed=placed,
            now_ms=NOW_MS,
        )
        self.partition.append(batch(b"a"), NOW_MS)

    async def change_isr(
        self, name: str, index: int, leader_epoch: int, isr: tuple[int, ...], lacking: frozenset[int], epochs: Epochs
    ) -> bool:
        self.written.append((name, index, leader_epoch, isr))
        self.lacking.append(lacking)
        self.epochs.append(epochs)
        self.high_watermarks.append(self.partition.high_watermark)
        await self.release.wait()
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def fall_silent(self) -> None:
        self.partition.tick(NOW_MS + LAG_MS + 1)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_changes, "RETRY_SECONDS", 0)


async def test_a_smaller_isr_counts_when_it_is_written() -> None:
    world = World(True)
    world.release.clear()
    world.fall_silent()
    await world.until(lambda: bool(world.written))
    assert world.written == [("t", 0, 3, (1,))]
    assert world.partition.high_watermark == 0
    world.release.set()
    await world.until(lambda: world.partition.state.isr == {1})
    assert world.partition.high_watermark == 1


async def test_a_follower_that_caught_up_returns_to_the_isr() -> None:
    world = World(True, True)
    world.fall_silent()
    await world.until(lambda: world.partition.state.isr == {1})
    world.partition.follower_fetched(2, 1, NOW_MS + LAG_MS + 2)
    await world.until(lambda: world.partition.state.isr == {1, 2})
    assert world.written[-1] == ("t", 0, 3, (2, 1))


async def test_after_a_refused_change_the_isr_is_decided_again() -> None:
    world = World(False, True)
    world.fall_silent()
    await world.until(lambda: not world.outcomes[:1] or world.outcomes == [True])
    await world.until(lambda: not world.changes.is_busy)
    assert world.partition.state.isr == {1, 2}
    world.fall_silent()
    await world.until(lambda: world.partition.state.isr == {1})


async def test_a_change_of_unknown_outcome_is_written_again_and_bounds_the_high_watermark_meanwhile() -> None:
    """RE2. Both replicas are needed until the answer is known, also when the write is refused after that."""
    world = World(OutcomeUnknown("the session was lost"), False, True)
    world.fall_silent()
    await world.until(lambda: world.partition.state.isr == {1})
    assert (world.high_watermarks, world.partition.high_watermark) == ([0, 0, 0], 1)


async def test_the_answer_to_a_leader_of_an_earlier_epoch_changes_nothing() -> None:
    world = World(True)
    world.release.clear()
    world.fall_silent()
    await world.until(lambda: bool(world.written))
    later = PartitionState(index=0, leader=1, replicas=(2, 1), isr=(2, 1), leader_epoch=4)
    world.partition.apply(later, NOW_MS)
    world.release.set()
    await world.until(lambda: not world.changes.is_busy)
    assert world.partition.state.isr == {1, 2}


async def test_a_stop_gives_up_operations_under_way() -> None:
    world = World()
    world.release.clear()
    world.fall_silent()
    await world.until(lambda: bool(world.written))
    await world.changes.stop()
    assert not world.changes.is_busy


async def test_a_change_that_is_written_again_has_the_registrations_of_its_decision() -> None:
    """CM5. The follower registers again between two attempts: it may not have what it had fetched."""
    world = World(True, OutcomeUnknown("the session was lost"), False)
    world.fall_silent()
    await world.until(lambda: world.partition.state.isr == {1})
    world.release.clear()
    world.partition.follower_fetched(2, 1, NOW_MS + LAG_MS + 2)
    await world.until(lambda: len(world.written) == 2)
    world.registered[2] = 12
    world.release.set()
    await world.until(lambda: len(world.written) == 3)
    assert [epochs[2] for epochs in world.epochs] == [11, 11, 11]


async def test_a_replica_that_registered_again_is_left_out_of_a_change_of_unknown_outcome() -> None:
    """CM5, RE2. The ISR from before is written: then it is known that the larger one was not, and will not be."""
    world = World(True, OutcomeUnknown("the session was lost"), False, True)
    world.fall_silent()
    await world.until(lambda: world.partition.state.isr == {1})
    world.release.clear()
    world.partition.follower_fetched(2, 1, NOW_MS + LAG_MS + 2)
    await world.until(lambda: len(world.written) == 2)
    world.registered[2] = 12
    world.release.set()
    await world.until(lambda: not world.changes.is_busy)
    assert [isr for _, _, _, isr in world.written] == [(1,), (2, 1), (2, 1), (1,)]
    world.outcomes.append(True)
    world.partition.follower_fetched(2, 1, NOW_MS + LAG_MS + 3)
    await world.until(lambda: world.partition.state.isr == {1, 2})


async def test_a_replica_that_left_the_isr_meanwhile_enters_no_isr_of_unknown_outcome() -> None:
    """CM5, RE2. It was in the ISR at the decision; then it registered again, and the controller removed it."""
    world = World(OutcomeUnknown("the session was lost"), False, True)
    before = PartitionState(index=0, leader=1, replicas=(2, 1, 3), isr=(2, 1, 3), leader_epoch=4)
    world.partition.apply(before, NOW_MS)
    world.release.clear()
    world.partition.follower_fetched(2, 1, NOW_MS + LAG_MS + 1)
    world.fall_silent()  # the third one
    await world.until(lambda: len(world.written) == 1)
    world.registered[2] = 12
    world.partition.apply(replace(before, isr=(1,), version=1), NOW_MS)
    world.release.set()
    await world.until(lambda: not world.changes.is_busy)
    assert [isr for _, _, _, isr in world.written] == [(2, 1), (2, 1), (1,)]
    assert world.partition.state.isr == {1}
