"""Each test runs with some seeds of its own, and with those that once failed (`seeds.txt`), for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.soak import seeds

SEEDS_FILE = Path(__file__).with_name("seeds.txt")
SEEDS = seeds(gate=1, soak=10)


def failed_seeds(test: str) -> list[int]:
    """Lines of the file: the test's name and a seed."""
    lines = (line.split("#")[0].split() for line in SEEDS_FILE.read_text().splitlines())
    return [int(line[1]) for line in lines if line and line[0] == test]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        name = metafunc.function.__name__
        chosen = [*SEEDS, *failed_seeds(name)]
        metafunc.parametrize("seed", list(dict.fromkeys(chosen)), ids=lambda seed: f"seed={seed}")
