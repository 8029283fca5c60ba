"""The laws G1-G5 and O1-O3 in randomly generated scenarios."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.simulation.world import World

from rota.coordinator.api import join_group


@pytest.fixture(autouse=True)
def _ids_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Member ids are the only thing that a coordinator draws."""
    ids = itertools.count(1)
    monkeypatch.setattr(join_group, "uuid4", lambda: next(ids))


def test_the_laws_hold(seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    if request.config.getoption("--rota-seed", default=None) is None:
        World(seed).play()
        return
    with capsys.disabled():
        World(seed, print).play()


def run_trace(seed: int) -> list[Any]:
    lines: list[str] = []
    World(seed, lines.append).play()
    return lines


def test_a_seed_reproduces_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_trace(1)
    monkeypatch.setattr(join_group, "uuid4", itertools.count(1).__next__)
    assert run_trace(1) == first
    monkeypatch.setattr(join_group, "uuid4", itertools.count(1).__next__)
    assert run_trace(2) != first
