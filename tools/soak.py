"""`make soak`: the tests with more seeds and examples than `make test` has time for, and their result in docs/SOAK.md.

python -m tools.soak               every suite below
python -m tools.soak chaos spark   these suites; the rows of the others stay as they are
"""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tools import gate

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "SOAK.md"


def _files(folder: str, *patterns: str) -> list[str]:
    return sorted({str(path.relative_to(ROOT)) for pattern in patterns for path in (ROOT / folder).glob(pattern)})


MACHINES = "tests/simulation/test_machines_worlds.py"
CLUSTERS = [
    *_files("tests/chaos", "test_cluster*.py", "test_ensemble.py", "test_rolling_restart.py"),
    "tests/cluster/test_kafka_programs.py",
]
TESTING_PAGE = ["tests/docs/test_testing_page.py"]  # its Go program compiles Go's library
SUITES = {
    "property": ["tests/property", "tests/contract", "tests/unit"],
    "simulation": [path for path in _files("tests/simulation", "test_*.py") if path != MACHINES],
    "machines": [MACHINES],  # 220,000 seeds
    "chaos": [path for path in _files("tests/chaos", "test_*.py") if path not in CLUSTERS],
    "clusters": CLUSTERS,  # several broker processes
    "interop": ["tests/interop"],
    "spark": ["tests/spark", "tests/packaging/test_compose.py", "tests/docs/test_notebook.py"],
    "packaging": [*_files("tests/packaging", "test_[!c]*.py"), "tests/packaging/test_compiled.py", *TESTING_PAGE],
}
VARIABLES = {"PYTHONHASHSEED": "0", "ROTA_SOAK": "1", "ROTA_SEEDS": "2 3 4 0", "ROTA_TEST_SUITES": "all"}
TEST_TIMEOUT_S = 1_800
ROW = re.compile(r"^\| `make soak SUITES=(\w+)` \|.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """How one suite ended. `commit` is the short id of the commit that was tested."""

    suite: str
    date: str
    commit: str
    passed: int
    failed: int
    skipped: int
    seconds: float

    def row(self) -> str:
        """The suite's row of the page."""
        return (
            f"| `make soak SUITES={self.suite}` | {self.date} | {self.commit} | {self.passed:,} | {self.failed} "
            f"| {self.skipped} | {self.seconds / 60:.1f} min |"
        )


def main(names: list[str]) -> int:
    """Run the suites; 1 when a test failed, 2 for an unknown suite."""
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        print(f"no such suite: {', '.join(unknown)}; known are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    failed = False
    for name in names or SUITES:
        result = run(name)
        PAGE.write_text(updated(PAGE.read_text(), result))
        print(result.row())
        failed = failed or result.failed > 0
    return int(failed)


def run(suite: str) -> Result:
    """Run one suite in the gate, so that an Apache Kafka runs beside it where there can be one."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-n", "2", "--timeout", str(TEST_TIMEOUT_S), f"--junitxml={report}"]
        command = [sys.executable, "-m", "tools.gate", *SUITES[suite], *options]
        started = time.monotonic()
        subprocess.run(command, cwd=ROOT, env={**os.environ, **VARIABLES}, check=False)
        return counted(suite, report, time.monotonic() - started)


def counted(suite: str, report: Path, seconds: float) -> Result:
    """The counts of a JUnit report. A run without a report counts as one failure."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    commit = head.stdout.strip()
    total, failed, errors, skipped = gate.counted(report)
    return Result(suite, today, commit, total - failed - errors - skipped, failed + errors, skipped, seconds)


def updated(page: str, result: Result) -> str:
    """The page with the suite's row replaced, or added after the last row."""
    rows = {found[1]: found[0] for found in ROW.finditer(page)}
    if result.suite in rows:
        return page.replace(rows[result.suite], result.row())
    return page.rstrip("\n") + "\n" + result.row() + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
