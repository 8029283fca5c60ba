"""The command: `python -m benchmarks.failover [--rota-only] [--rounds N] [SCENARIO …]`; see the package."""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from tools.broker_processes import BrokerProcesses
from tools.cluster import Cluster
from tools.networked_cluster import NetworkedCluster
from tools.peer.cluster import KafkaCluster
from tools.peer.jars import fetch

from benchmarks.brokers import has_kafka
from benchmarks.failover import disasters
from benchmarks.failover.scenarios import PLAIN, Scenario, Stage

Figures = dict[str, list[dict[str, float]]]  # of each scenario, the figures of each round
FLUSHED: Final = {"log.flush.interval.messages": "1"}
PARTITIONED: Final[dict[str, Scenario]] = {
    "cut": disasters.cut_from_brokers,
    "cut-from-all": disasters.cut_from_all,
    "not-received": disasters.not_received,
    "receives-nothing": disasters.receives_nothing,
}
POWER: Final[dict[str, Scenario]] = {"power": disasters.power_cut}
CLUSTERS: Final = (
    (Cluster, PLAIN),
    (NetworkedCluster, PARTITIONED),
    (partial(NetworkedCluster, properties=FLUSHED), POWER),
)
SCENARIOS: Final = {**PLAIN, **PARTITIONED, **POWER}


def measure(cluster: Callable[[Path], BrokerProcesses], names: Sequence[str], rounds: int, console: Console) -> Figures:
    """Run each scenario so many times on a cluster that is started for them. Raises TimeoutError."""
    figures: Figures = {name: [] for name in names}
    if not names:
        return figures
    with tempfile.TemporaryDirectory(prefix="rota-failover-") as folder, cluster(Path(folder)) as running:
        kind = type(running).__name__
        console.print(f"{kind}: started, load {_load()}")
        for number in range(rounds):
            for name in names:
                stage = Stage(running, f"{name}-{number}", f"{name}-{number}")
                stage.create_topic()
                figures[name].append(SCENARIOS[name](stage))
                stage.restore()
                console.print(f"{kind}: {name} {_shown(figures[name][-1])}, load {_load()}")
    return figures


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def _shown(figures: dict[str, float]) -> str:
    return ", ".join(f"{what} {value:.3g}" for what, value in figures.items())


def table_of(ours: Figures, theirs: Figures) -> Table:
    """A row for each figure: median and worst of Rota and of Kafka, if it has them, the ratio of the medians."""
    table = Table("what happens", "until", "Rota", "worst", "Apache Kafka", "worst", "ratio")
    for name, rounds in ours.items():
        title = re.split(r", until|\.", SCENARIOS[name].__doc__ or "")[0]
        for what in rounds[0]:
            mine = [figures[what] for figures in rounds]
            other = [figures[what] for figures in theirs.get(name, [])]
            table.add_row(title, what, *cells(mine, other, is_count=what.endswith("(count)")))
            title = ""
    return table


def cells(mine: Sequence[float], other: Sequence[float], *, is_count: bool) -> list[str]:
    """Median and worst of each, and Rota's median by Kafka's; counts and missing figures have no ratio."""
    shown = "{:.0f}" if is_count else "{:.2f} s"
    measured = [values for values in (mine, other) if values]
    figures = [shown.format(value) for values in measured for value in (statistics.median(values), max(values))]
    ratio = f"{statistics.median(mine) / statistics.median(other):.2f}" if other and not is_count else "-"
    return [*figures, *["-"] * (4 - len(figures)), ratio]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description="failures, beside Apache Kafka")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; default all")
    parser.add_argument("--rota-only", action="store_true", help="do not start Apache Kafka")
    parser.add_argument("--rounds", type=int, default=1, help="how often each scenario is run on each cluster")
    arguments = parser.parse_args()
    unknown = set(arguments.scenarios) - set(SCENARIOS)
    if unknown:
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    return arguments


def main() -> None:
    arguments, console = options(), Console()
    names = arguments.scenarios or list(SCENARIOS)
    beside = has_kafka() and not arguments.rota_only
    if has_kafka():
        fetch()  # the jars of Kafka's producer, too
    ours: Figures = {}
    for cluster, scenarios in CLUSTERS:
        ours |= measure(cluster, [name for name in names if name in scenarios], arguments.rounds, console)
    plain = [name for name in names if name in PLAIN]
    theirs = measure(KafkaCluster, plain, arguments.rounds, console) if beside else {}
    console.print(table_of(ours, theirs))


if __name__ == "__main__":
    main()
