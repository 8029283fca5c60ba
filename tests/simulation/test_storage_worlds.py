"""The laws of a cluster whose disks, clocks and sessions of the store fail, in randomly generated scenarios.

In the soak only: a seed takes 4 s of processor time.
"""

from __future__ import annotations

import pytest
from tests.simulation.storage_world import play
from tests.soak import soak_only

pytestmark = [pytest.mark.usefixtures("quiet"), soak_only]


def test_the_laws_hold(storage_seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    if request.config.getoption("--rota-seed", default=None) is None:
        world = play(storage_seed)
    else:
        with capsys.disabled():
            world = play(storage_seed, print)
    assert world.elections
    assert sum(len(writer.acked) for writer in world.ledger.writers) > 20
    assert world.unclean_sent > 20
