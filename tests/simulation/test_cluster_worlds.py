"""The laws of a cluster in worlds that nobody wrote: three real brokers, real clients, virtual time."""

from __future__ import annotations

import pytest
from tests.simulation.cluster_world import play

pytestmark = pytest.mark.usefixtures("quiet")


def test_the_laws_hold(cluster_seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    if request.config.getoption("--rota-seed", default=None) is None:
        world = play(cluster_seed)
    else:
        with capsys.disabled():
            world = play(cluster_seed, print)
    assert world.elections
    assert sum(len(writer.acked) for writer in world.ledger.writers) > 20
    assert sum(client.answers for client in world.group_clients) > 20


def story(seed: int) -> list[str]:
    lines: list[str] = []
    play(seed, lines.append)
    return lines


def test_a_seed_tells_the_same_story_again() -> None:
    first = story(1)
    assert story(1) == first
