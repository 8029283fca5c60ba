"""CO2: an event for all machines is worked off in slices of bounded cost, and reaches each of them once."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.runtime.toy import Counter, Tick, ToyWorld

from rota.coordinator.runtime import broadcast as broadcast_module

COUNTERS, COST_MAX = 30, 10


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> ToyWorld:
    monkeypatch.setattr(broadcast_module, "SLICE_COST_MAX", COST_MAX)
    world = ToyWorld(shards=3).lead()
    for number in range(COUNTERS):
        for slot in range(number % 4):
            world.put(f"c{number}", slot, 1)
    world.settle()
    return world


def cost(counter: Counter) -> int:
    return 1 + len(counter.slots)


def ticks(world: ToyWorld) -> dict[str, int]:
    return {counter.machine_id: counter.ticks for counter in world.runtime.machines()}


def test_every_machine_is_stepped_once_in_slices(world: ToyWorld) -> None:
    finished: list[bool] = []
    world.runtime.broadcast(Tick(), cost, lambda: finished.append(True))
    before, largest, slices = ticks(world), 0, 0
    while world.tick_queue:
        world.tick()
        now, slices = ticks(world), slices + 1
        done = [c for c in world.runtime.machines() if now[c.machine_id] > before[c.machine_id]]
        largest, before = max(largest, sum(map(cost, done))), now
    assert set(before.values()) == {1}
    assert largest < COST_MAX + 4, "a slice ends with the machine that exceeds it"
    assert slices >= 5
    assert finished == [True]


def test_one_broadcast_follows_the_other(world: ToyWorld) -> None:
    for _ in range(3):
        world.runtime.broadcast(Tick(), cost)
    world.settle()
    assert set(ticks(world).values()) == {3}


def test_machines_that_leave_meanwhile_are_passed_over(world: ToyWorld) -> None:
    world.runtime.broadcast(Tick(), cost)
    world.tick()
    world.runtime.resign(2)
    world.put("new", 0, 1)
    world.settle()
    assert set(ticks(world).values()) <= {0, 1}
    assert ticks(world)["new"] in (0, 1)
