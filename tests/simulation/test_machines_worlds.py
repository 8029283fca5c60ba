"""The laws of a cluster of pure machines, in slices of many seeds; the times of a seed are in docs/SOAK.md."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.simulation.machines_broker import DATA
from tests.simulation.machines_deletions import play_deletions
from tests.simulation.machines_disks import play_disks
from tests.simulation.machines_minimum import play_minimum
from tests.simulation.machines_moves import play_moving
from tests.simulation.machines_short import play_short
from tests.simulation.machines_unclean import play_unclean
from tests.simulation.machines_world import MachinesWorld, play

pytestmark = pytest.mark.usefixtures("quiet", "_collected_after_each")

Play = Callable[..., MachinesWorld]
Count = Callable[[Any], dict[str, int]]  # what happened in a world
PlaySlice = Callable[[range, Play, Count], Counter[str] | None]


@pytest.fixture
def _collected_after_each() -> Iterator[None]:
    """A world is one large cycle: it is looked for once, when its run is over, and nothing else is looked at."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def play_slice(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> PlaySlice:
    """Play these seeds and return the sums of what happened; a failure names its seed.

    None for the seed of `make sim`, which is printed, and for less than ten seeds: single runs may be poor.
    """

    def play_slice(seeds: range, play: Play, count: Count) -> Counter[str] | None:
        if request.config.getoption("--rota-seed", default=None) is not None:
            with capsys.disabled():
                play(seeds[0], print)
            return None
        counted = Counter[str]()
        for seed in seeds:
            try:
                counted.update(count(play(seed)))
            except Exception as violation:
                violation.add_note(f"seed {seed}: make sim SEED={seed}")
                raise
            gc.collect()
            if seed == seeds[0]:
                gc.freeze()  # modules that the first run has imported
        return counted if len(seeds) >= 10 else None

    return play_slice


def happened(world: MachinesWorld) -> dict[str, int]:
    answers = sum(client.answers for client in world.clients)
    return {
        "elected": world.laws.elections > 2,
        "acknowledged": world.laws.acknowledged,
        "answers": answers,
        "moves": world.laws.moves,
    }


def happened_unclean(world: MachinesWorld) -> dict[str, int]:
    laws = world.laws
    kept = sum(epoch >= laws.unclean[DATA] for epoch, _, _ in laws.acks) if laws.unclean else 0
    return {"unclean": DATA in laws.unclean, "kept": kept}


def happened_to_disks(world: MachinesWorld) -> dict[str, int]:
    disks = world.disks.values()
    return {"recovered": sum(disk.recovered for disk in disks), "loaded": sum(disk.loaded for disk in disks)}


def assert_happened(counted: Counter[str] | None, seeds: range, **least: float) -> None:
    """More than so many of each kind in a world."""
    if counted is not None:
        assert all(counted[kind] > number * len(seeds) for kind, number in least.items()), (counted, least)


def test_the_laws_hold(machine_seeds: range, play_slice: PlaySlice) -> None:
    counted = play_slice(machine_seeds, play, happened)
    assert_happened(counted, machine_seeds, elected=1 / 2, acknowledged=20, answers=10)


def test_the_laws_hold_in_short_worlds(short_seeds: range, play_slice: PlaySlice) -> None:
    counted = play_slice(short_seeds, play_short, happened)
    assert_happened(counted, short_seeds, elected=1 / 2, acknowledged=5, answers=5, moves=0)


def test_the_laws_hold_with_unclean_elections(unclean_seeds: range, play_slice: PlaySlice) -> None:
    counted = play_slice(unclean_seeds, play_unclean, happened_unclean)
    assert_happened(counted, unclean_seeds, unclean=1 / 3, kept=4)


def test_the_laws_hold_while_replicas_are_reassigned(moving_seeds: range, play_slice: PlaySlice) -> None:
    counted = play_slice(moving_seeds, play_moving, happened)
    assert_happened(counted, moving_seeds, moves=1, acknowledged=20)


def test_the_laws_hold_while_min_insync_replicas_changes(minimum_seeds: range, play_slice: PlaySlice) -> None:
    counted = play_slice(minimum_seeds, play_minimum, happened)
    assert_happened(counted, minimum_seeds, acknowledged=5)


def test_the_laws_hold_while_records_are_deleted(deletion_seeds: range, play_slice: PlaySlice) -> None:
    play_slice(deletion_seeds, play_deletions, lambda world: {"deleted": world.laws.deleted})


def test_the_laws_hold_with_slow_disks_and_failing_logs(disk_seeds: range, play_slice: PlaySlice) -> None:
    counted = play_slice(disk_seeds, play_disks, happened_to_disks)
    assert_happened(counted, disk_seeds, recovered=1 / 4, loaded=0)


def run_trace(seed: int) -> list[str]:
    lines: list[str] = []
    lines.append(str(play(seed, lines.append).heap.events))
    return lines


def test_a_seed_reproduces_its_run() -> None:
    first = run_trace(1)
    assert run_trace(2) != first
    assert run_trace(1) == first
