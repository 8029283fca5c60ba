"""How long `rota --help` and `rota version` take: `python -m benchmarks.command_start [RUNS]`.

Each run is a process of its own, after a first one that writes the bytecode. The least is printed, elapsed and of
processor time, and beside it the least of an interpreter that does nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

RUNS = 10
GOAL_MS = 120
ROTA = str(Path(sys.executable).with_name("rota"))
COMMANDS = {
    "rota --help": [ROTA, "--help"],
    "rota version": [ROTA, "version"],
    "python -c pass": [sys.executable, "-c", "pass"],
}


def run_once(command: Sequence[str]) -> tuple[float, float]:
    """Milliseconds, elapsed and of processor time."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command} exits with {process.returncode}"
    return (time.perf_counter() - began) * 1000, (used.ru_utime + used.ru_stime) * 1000


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    for name, command in COMMANDS.items():
        run_once(command)
        figures = [run_once(command) for _ in range(runs)]
        elapsed_ms, used_ms = (min(column) for column in zip(*figures, strict=True))
        goal = f" (goal: {GOAL_MS} ms)" if command[0] == ROTA else ""
        print(f"{name:15} {elapsed_ms:5.0f} ms, {used_ms:5.0f} ms of processor time{goal}")


if __name__ == "__main__":
    main()
