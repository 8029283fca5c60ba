"""The laws of the client in randomly generated scenarios: real clients, a real broker, virtual time."""

from __future__ import annotations

import pytest
from tests.simulation.client_world import World, play

pytestmark = pytest.mark.usefixtures("quiet")


def test_the_laws_hold(client_seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    if request.config.getoption("--rota-seed", default=None) is None:
        world = play(client_seed)
    else:
        with capsys.disabled():
            world = play(client_seed, print)
    check_that_much_happened(world)


def check_that_much_happened(world: World) -> None:
    assert world.history.commits
    assert sum(len(writer.acked) for writer in world.history.writers) > 100


def run_trace(seed: int) -> list[str]:
    lines: list[str] = []
    check_that_much_happened(play(seed, lines.append))
    return lines


def test_a_seed_reproduces_its_run() -> None:
    first = run_trace(1)
    assert run_trace(1) == first
