"""The laws of a cluster in randomly generated scenarios: three real brokers, real clients, virtual time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.simulation.cluster_world import ClusterWorld, play

pytestmark = pytest.mark.usefixtures("quiet")


def test_the_laws_hold(cluster_seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    if request.config.getoption("--rota-seed", default=None) is None:
        world = play(cluster_seed)
    else:
        with capsys.disabled():
            world = play(cluster_seed, print)
    check_that_much_happened(world)


def check_that_much_happened(world: ClusterWorld) -> None:
    assert world.elections
    assert sum(len(writer.acked) for writer in world.history.writers) > 20
    # 16 in a run in which sessions of the store end again and again
    assert sum(client.answers for client in world.group_clients) > 10


TRACE = """
import logging, structlog
from tests.simulation.cluster_world import play
logging.disable(logging.CRITICAL)
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
print(play(1).loop.trace.hexdigest())
"""


def test_a_seed_reproduces_its_run_after_another_seed_and_in_another_process() -> None:
    """All turns of the loop and all bytes that were sent are the same, whatever ran before, in any order of hashes."""
    check_that_much_happened(play(3))
    world = play(1)
    check_that_much_happened(world)
    first = world.loop.trace.hexdigest()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", TRACE]
    other = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert other.stdout.split()[-1] == first
