"""The gate (`make test`) is reproducible and leaves only marked tests to the soak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parents[3]


def collected(*arguments: str, **environment: str) -> str:
    """What pytest would run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_hypothesis_draws_the_same_examples_in_each_run_of_the_gate() -> None:
    if os.environ.get("ROTA_SOAK") != "1":
        assert settings().derandomize
    assert settings().deadline is None


def test_the_soak_runs_more_seeds_than_the_gate() -> None:
    gate, soak = collected("tests/chaos", ROTA_SOAK=""), collected("tests/chaos", ROTA_SOAK="1")
    assert "seed=1" in gate
    assert "seed=10" not in gate
    assert "seed=10" in soak


def test_a_test_that_is_marked_soak_is_left_out_of_the_gate() -> None:
    file = "tests/spark/test_pipeline.py"
    assert "[python -m]" not in collected(file, ROTA_SOAK="")
    assert "[python -m]" in collected(file, ROTA_SOAK="1")
