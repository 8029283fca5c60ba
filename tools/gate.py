"""Runs pytest, with an Apache Kafka beside it where there can be one.

python -m tools.gate [pytest arguments]           one session
python -m tools.gate --whole [pytest arguments]   every test: tests/unit in one process, at the same time all others

Most tests are in tests/unit, and they wait for nothing. Each worker of pytest-xdist would collect all of them and send
a report of each: a process without workers needs a third less CPU time for them.

Where Java and Maven are installed, Apache Kafka's jars are downloaded and one broker runs during the tests: ROTA_PEER
and ROTA_PEER_DATA have its address and its data folder. Elsewhere the tests that need it are skipped and the missing
program is printed; with ROTA_CI set that is a failure.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

from tools.peer import broker, jars

# program and what is not tested without it
PROGRAMS = {
    "java": "Kafka's own tools and clients against Rota; comparisons with a running Apache Kafka",
    "mvn": "the same: Maven downloads Apache Kafka's jars",
    "kcat": "interop with kcat",
    "chromium": "the console in a browser",
    "node": "the helper for JavaScript of docs/TESTING.md; interop with kafkajs",
    "npm": "interop with kafkajs",
    "go": "the helper for Go of docs/TESTING.md; interop with franz-go and sarama",
    "zsh": "the completion of zsh",
    "fish": "the completion of fish",
    "systemd-analyze": "the unit file of the service",
    "gcc": "the compiled record codec (the interpreted one is tested)",
}


WHOLE = "--whole"
UNITS = "tests/unit"


def main(arguments: list[str]) -> int:
    """Returns pytest's exit code; of two sessions the first that is not 0."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    for name in absent:
        print(f"SKIPPED because {name} is not installed: {PROGRAMS[name]}", file=sys.stderr)
    if absent and os.environ.get("ROTA_CI"):
        print(f"in CI nothing is skipped: install {', '.join(absent)}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    if WHOLE not in arguments:
        return run_with_kafka(arguments, absent)
    options = [argument for argument in arguments if argument != WHOLE]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder, "units.xml"), Path(folder, "others.xml")
        with UnitSession([*options, f"--junitxml={reports[0]}"], Path(folder, "units.txt")) as units:
            compile_tests()
            others = [*options, f"--junitxml={reports[1]}", "tests", f"--ignore={UNITS}"]
            code = run_with_kafka(others, absent)
            code = units.finish() or code
        print(summary(reports, time.monotonic() - started), flush=True)
    return code


def run_with_kafka(arguments: list[str], absent: Sequence[str]) -> int:
    """Run pytest, beside a Kafka broker unless programs for it are absent; returns pytest's exit code."""
    if {"java", "mvn"} & set(absent):
        return run_pytest(arguments, {})
    try:
        return run_beside_kafka(arguments)
    except (jars.Missing, subprocess.CalledProcessError, TimeoutError) as failure:
        print(f"SKIPPED because Apache Kafka cannot run: {failure}", file=sys.stderr)
        return 1 if os.environ.get("ROTA_CI") else run_pytest(arguments, {})


def run_beside_kafka(arguments: list[str]) -> int:
    """Run pytest while a Kafka broker runs; returns its exit code. Raises Missing, CalledProcessError, TimeoutError."""
    address = broker.start(options=jars.QUICK)
    try:
        variables = {"ROTA_PEER": address, "ROTA_PEER_DATA": str(jars.home() / "data")}
        return run_pytest(arguments, variables)
    finally:
        broker.stop()


def compile_tests(arguments: Sequence[str] = ("tests", f"--ignore={UNITS}")) -> None:
    """Have the bytecode of all tests but the units written, and that of the packages that they import.

    The workers begin together: where there is none, as in a fresh clone, each of them compiles all of it.
    """
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *arguments]
    subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def environment() -> dict[str, str]:
    """The environment of a test session.

    The order of sets is that of `make sim`, so that a seed has the same run there. Bytecode is written even where
    the environment says no: hundreds of processes of the tests import the same modules.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {"PYTHONHASHSEED": "0", **inherited}


def summary(reports: Sequence[Path], seconds: float) -> str:
    """The last line: the counts of both sessions. A session without a report counts as one error."""
    found = [counted(report) for report in reports]
    total, failed, errors, skipped = (sum(column) for column in zip(*found, strict=True))
    counts = {"failed": failed, "passed": total - failed - errors - skipped, "skipped": skipped, "errors": errors}
    text = ", ".join(f"{number} {name}" for name, number in counts.items() if number or name == "passed")
    return f"==== both sessions: {text} in {seconds:.0f} s ===="


def counted(report: Path) -> tuple[int, int, int, int]:
    """(tests, failed, errors, skipped) of a JUnit report; one error when there is none."""
    if not report.exists():
        return 1, 0, 1, 0
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total, failed, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    return total, failed, errors, skipped


def run_pytest(arguments: list[str], variables: dict[str, str]) -> int:
    """Run one session; returns its exit code."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env={**environment(), **variables}, check=False).returncode


class UnitSession:
    """The unit tests in a process without workers; its output is printed when both sessions have ended."""

    def __init__(self, options: list[str], output: Path) -> None:
        command = [sys.executable, "-m", "pytest", *options, "-n", "0", UNITS]
        self._output = output
        with output.open("w") as file:
            self._process = subprocess.Popen(command, env=environment(), stdout=file, stderr=subprocess.STDOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def finish(self) -> int:
        """Wait for the end and print the output; returns pytest's exit code."""
        code = self._process.wait()
        print(self._output.read_text(errors="replace"), end="", flush=True)
        return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
