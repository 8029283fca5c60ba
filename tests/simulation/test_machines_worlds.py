"""The laws of a cluster of pure machines, in slices of many seeds; a seed takes 60 to 120 ms of processor time."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from tests.simulation.machines_broker import DATA
from tests.simulation.machines_moves import play_moving
from tests.simulation.machines_unclean import play_unclean
from tests.simulation.machines_world import play

pytestmark = pytest.mark.usefixtures("quiet", "_collected_after_each")


@pytest.fixture
def _collected_after_each() -> Iterator[None]:
    """A world is one large cycle: it is looked for once, when its run is over, and nothing else is looked at."""
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def test_the_laws_hold(
    machine_seeds: range, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    if request.config.getoption("--rota-seed", default=None) is not None:
        with capsys.disabled():
            play(machine_seeds[0], print)
        return
    worlds_elected = acknowledged = answers = 0
    for seed in machine_seeds:
        try:
            world = play(seed)
        except Exception as violation:
            violation.add_note(f"seed {seed}: make sim SEED={seed}")
            raise
        worlds_elected += world.laws.elections > 2
        acknowledged += world.laws.acknowledged
        answers += sum(client.answers for client in world.clients)
        del world
        gc.collect()
    seeds = len(machine_seeds)  # single runs may be poor
    assert seeds < 10 or (worlds_elected > seeds // 2 and acknowledged > 20 * seeds and answers > 10 * seeds)


def test_the_laws_hold_with_unclean_elections(
    unclean_seeds: range, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    if request.config.getoption("--rota-seed", default=None) is not None:
        with capsys.disabled():
            play_unclean(unclean_seeds[0], print)
        return
    worlds_unclean = kept = 0
    for seed in unclean_seeds:
        try:
            laws = play_unclean(seed).laws
        except Exception as violation:
            violation.add_note(f"seed {seed}: make sim SEED={seed}")
            raise
        worlds_unclean += DATA in laws.unclean
        kept += sum(epoch >= laws.unclean[DATA] for epoch, _, _ in laws.acks) if laws.unclean else 0
        del laws
        gc.collect()
    seeds = len(unclean_seeds)
    assert seeds < 10 or (worlds_unclean > seeds // 3 and kept > 5 * seeds)


def test_the_laws_hold_while_replicas_are_reassigned(
    moving_seeds: range, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    if request.config.getoption("--rota-seed", default=None) is not None:
        with capsys.disabled():
            play_moving(moving_seeds[0], print)
        return
    moves = acknowledged = 0
    for seed in moving_seeds:
        try:
            laws = play_moving(seed).laws
        except Exception as violation:
            violation.add_note(f"seed {seed}: make sim SEED={seed}")
            raise
        moves += laws.moves
        acknowledged += laws.acknowledged
        del laws
        gc.collect()
    seeds = len(moving_seeds)
    assert seeds < 10 or (moves > seeds and acknowledged > 20 * seeds)


def run_trace(seed: int) -> list[str]:
    lines: list[str] = []
    lines.append(str(play(seed, lines.append).heap.events))
    return lines


def test_a_seed_reproduces_its_run() -> None:
    first = run_trace(1)
    assert run_trace(2) != first
    assert run_trace(1) == first
