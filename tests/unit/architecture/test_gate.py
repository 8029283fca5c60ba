"""The gate (`make test`) is reproducible, leaves only marked tests to the soak, starts a Spark in one worker, and runs
long tests early."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import settings
from tests.xdist_groups import GROUPS, LONG, Groups

ROOT = Path(__file__).parents[3]


FILES = ("tests/chaos/test_fuzz.py", "tests/property/test_replica_walk.py")  # with seeds, with a test marked soak


def run_pytest(*arguments: str, **environment: str) -> str:
    """Run pytest in the repository; returns its standard output."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_hypothesis_draws_the_same_examples_in_each_run_of_the_gate() -> None:
    if os.environ.get("ROTA_SOAK") != "1":
        assert settings().derandomize
    assert settings().deadline is None


def test_the_soak_runs_more_seeds_than_the_gate_and_the_tests_that_are_marked() -> None:
    gate, soak = (run_pytest("--collect-only", "-q", *FILES, ROTA_SOAK=value) for value in ("", "1"))
    assert "seed=1" in gate
    assert "seed=10" not in gate
    assert "seed=10" in soak
    assert "[1-False-2]" not in gate
    assert "[1-False-2]" in soak


def test_one_worker_runs_all_tests_of_a_group(tmp_path: Path) -> None:
    """pytest-xdist ignores its own groups with pytest 9.2; the gate started a Spark in each of its workers."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    file = tmp_path / "tests" / "spark" / "test_light.py"
    file.parent.mkdir(parents=True)
    file.write_text("import pytest\n@pytest.mark.parametrize('number', range(8))\ndef test_it(number): pass\n")
    options = ["-n", "2", "-v", "-c", os.devnull, f"--rootdir={tmp_path}", "--import-mode=importlib", str(tmp_path)]
    workers = re.findall(r"^\[(gw\d)\].* PASSED ", run_pytest(*options, PYTHONPATH=str(ROOT)), re.MULTILINE)
    assert len(workers) == 8
    assert len(set(workers)) == 1


class Worker:
    """As many tests as it is sent stay with it."""

    shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        pass


def test_a_long_test_is_the_first_of_those_that_wait() -> None:
    config: Any = SimpleNamespace(getvalue=lambda _: ["popen"], option=SimpleNamespace(loadscopereorder=True))
    worker: Any = Worker()
    scheduler = Groups(config, None)
    scheduler.add_node(worker)
    long = "tests/cluster/test_streams.py::test_it"
    scheduler.add_node_collection(worker, [*(f"tests/test_short.py::test_{number}" for number in range(9)), long])
    scheduler.schedule()
    assert next(iter(scheduler.workqueue)) == long


def test_each_long_test_exists() -> None:
    assert [each for each in LONG if each not in GROUPS.values() and not [*ROOT.glob(each)]] == []
