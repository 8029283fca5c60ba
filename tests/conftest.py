"""What holds for every test: the profile of Hypothesis, which tests only the soak runs (tests/soak.py), and which run
on one worker of pytest-xdist (tests/xdist_groups.py)."""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings
from tests.soak import SOAK
from tests.xdist_groups import Groups

from rota.coordinator.observe import logs  # noqa: F401 - loads structlog without rich, which draws a traceback in 100 ms

ALLOCATIONS_OF_A_COLLECTION = 50_000  # Python's 700 are for programs that live in little memory

# rota.testing.plugin: where the installed package has no entry point yet
pytest_plugins = ["rota.testing.plugin", "tests.secrets_in_output"]

gc.disable()  # until all tests are collected: nothing of what collection makes is garbage

# no verdict depends on how busy the machine is: no deadlines, and no check of the time that drawing takes
settings.register_profile("gate", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("soak" if SOAK else "gate")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if SOAK:
        return
    left_out = [item for item in items if item.get_closest_marker("soak") is not None]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.get_closest_marker("soak") is None]


def pytest_collection_finish() -> None:
    """Modules and tests live until the end: `gc.collect()` in a test then looks at that test's objects only."""
    gc.freeze()
    gc.set_threshold(ALLOCATIONS_OF_A_COLLECTION)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Groups:
    return Groups(config, log)
