"""Whether a row has become slower: `python -m benchmarks.check AGAINST [WORD …]`, or `make bench-check AGAINST=…`.

AGAINST is an earlier release: its wheel, or a commit of this repository. One broker of each runs; the rows whose name
contains one of the words (default: all) are measured on them in turn, `--rounds` times, and the ratio is the median of
the ratios of the rounds, so that what slows down the machine for a while slows down both. Exits with 1 if a row is
worse by more than a tenth. The broker's processor time beside it tells a slower broker from a busy machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.brokers import Running, rota
from benchmarks.rows import Row, settings
from benchmarks.selection import chosen

WORSE_MAX = 0.1
START = Row("start to the first answered ApiVersions", "ms", False, 1.0, lambda address: 0.0)
IDLE = Row("memory, idle", "MB", False, 1.0, lambda address: 0.0)
ROOT = Path(__file__).parent.parent


@dataclass(slots=True)
class Compared:
    """The rounds of one row: the figures and the processor seconds of the earlier release and of this one."""

    row: Row
    before: list[float] = field(default_factory=list)
    now: list[float] = field(default_factory=list)
    before_cpu_s: float = 0.0
    now_cpu_s: float = 0.0

    @property
    def ratio(self) -> float:
        """How much better this release is: above 1 it is faster, whatever the row counts."""
        pairs = zip(self.now, self.before, strict=True)
        return median(now / before if self.row.more else before / now for now, before in pairs)

    @property
    def is_worse(self) -> bool:
        return self.ratio < 1 - WORSE_MAX


def main() -> int:
    arguments = options()
    settings.seconds = arguments.seconds
    rows = chosen(arguments.words)
    with tempfile.TemporaryDirectory(prefix="rota-check-") as folder:
        packages = unpacked(arguments.against, Path(folder))
        starts = not arguments.words or any(word in row.name for word in arguments.words for row in (START, IDLE))
        compared = compare_starts(packages, arguments.rounds) if starts else []
        with rota(packages=packages) as before, rota() as now:
            compared += [compare(row, before, now, arguments.rounds) for row in rows]
    show(compared, arguments.against)
    return int(any(row.is_worse for row in compared))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.check", description="this release beside an earlier one"
    )
    parser.add_argument("against", help="a wheel, or a commit of this repository")
    parser.add_argument("words", nargs="*", help="rows whose name contains one of these; default all")
    parser.add_argument("--rounds", type=int, default=5, help="how often each row is measured on each broker")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a row of requests runs")
    return parser.parse_args()


def unpacked(against: str, folder: Path) -> Path:
    """The folder with the packages of that release; a commit's codecs are compiled where a compiler is."""
    if against.endswith(".whl"):
        with zipfile.ZipFile(against) as wheel:
            wheel.extractall(folder)
        return folder
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", against], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(build, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "src"


def compare_starts(packages: Path, rounds: int) -> list[Compared]:
    """Start both in turn, after a first start of each, which writes the bytecode; weigh them then."""
    start, idle = Compared(START), Compared(IDLE)
    for number in range(rounds + 1):
        for release in (packages, None) if number % 2 else (None, packages):
            with rota(packages=release) as broker:
                used_s, memory_mb = cpu_s(broker.pid), broker.memory_mb()
            if number == 0:
                continue
            if release is None:
                start.now_cpu_s += used_s
            else:
                start.before_cpu_s += used_s
            for row, figure in ((start, broker.started_s * 1000), (idle, memory_mb)):
                (row.now if release is None else row.before).append(figure)
    return [start, idle]


def compare(row: Row, before: Running, now: Running, rounds: int) -> Compared:
    """Measure the row on both, in changing order, after a first round that does not count."""
    compared = Compared(row)
    row.measure(before.address)
    row.measure(now.address)
    before_cpu_s, now_cpu_s = cpu_s(before.pid), cpu_s(now.pid)
    for number in range(rounds):
        for broker in (before, now) if number % 2 else (now, before):
            figures = compared.before if broker is before else compared.now
            figures.append(row.measure(broker.address))
    compared.before_cpu_s, compared.now_cpu_s = cpu_s(before.pid) - before_cpu_s, cpu_s(now.pid) - now_cpu_s
    return compared


def cpu_s(pid: int) -> float:
    """The processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(compared: list[Compared], against: str) -> None:
    table = Table("work", "unit", against[-20:], "now", "ratio", "CPU s before", "CPU s now")
    for row in compared:
        colour = "red" if row.is_worse else "green"
        figures = (f"{median(row.before):,.1f}", f"{median(row.now):,.1f}", f"[{colour}]{row.ratio:.2f}[/]")
        table.add_row(row.row.name, row.row.unit, *figures, f"{row.before_cpu_s:.1f}", f"{row.now_cpu_s:.1f}")
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
