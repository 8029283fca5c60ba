"""The laws of a cluster whose disks, clocks and sessions of the store fail, in randomly generated scenarios.

A seed takes 4 s of processor time: the gate plays three of the six scenarios.
"""

from __future__ import annotations

import pytest
from tests.simulation.storage_world import play

pytestmark = pytest.mark.usefixtures("quiet")


def test_the_laws_hold(storage_seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    if request.config.getoption("--rota-seed", default=None) is None:
        world = play(storage_seed)
    else:
        with capsys.disabled():
            world = play(storage_seed, print)
    assert world.elections
    assert sum(len(writer.acked) for writer in world.history.writers) > 20
    assert world.unclean_sent > 20
