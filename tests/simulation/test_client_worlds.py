"""The laws of the client in randomly generated scenarios: real clients, a real broker, virtual time."""

from __future__ import annotations

import pytest
from tests.simulation.client_world import World, play
from tests.simulation.copy_world import CopyWorld
from tests.simulation.epoch_world import EpochWorld

pytestmark = pytest.mark.usefixtures("quiet")


def test_the_laws_hold(client_seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    check_that_much_happened(played(World, client_seed, request, capsys))


def test_the_laws_hold_with_the_consumer_protocol(
    epoch_seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    check_that_much_happened(played(EpochWorld, epoch_seed, request, capsys))


def test_eo1_a_topic_is_copied_exactly_once(
    copy_seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    world = played(CopyWorld, copy_seed, request, capsys)
    assert isinstance(world, CopyWorld)
    assert len(world.copied) > 100


def played(kind: type[World], seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> World:
    """The world of a seed; printed as it goes if it was asked for alone."""
    if request.config.getoption("--rota-seed", default=None) is None:
        return play(seed, kind=kind)
    with capsys.disabled():
        return play(seed, print, kind)


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
