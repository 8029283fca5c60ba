"""`--rota-seed N` runs one seed; without it some dozens run, and every seed that has failed before."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from tests.soak import seeds

SEEDS_FILE = Path(__file__).with_name("seeds.txt")
SEEDS = seeds(gate=40, soak=400)
# of clusters of failure detectors: in the gate those that find the mutations of docs/MUTATIONS.md
SWIM_SEEDS = seeds(gate=0, soak=400) or (1, 2, 3, 14, 23, 28)
CLIENT_SEEDS_FILE = Path(__file__).with_name("client_seeds.txt")
CLIENT_SEEDS = seeds(gate=0, soak=80) or (2,)  # of worlds with real clients, which take longer; the gate reproduces 1
EPOCH_SEEDS_FILE = Path(__file__).with_name("epoch_seeds.txt")
EPOCH_SEEDS = seeds(gate=0, soak=80) or (3,)  # of those whose group has the consumer protocol
COPY_SEEDS_FILE = Path(__file__).with_name("copy_seeds.txt")
COPY_SEEDS = seeds(gate=0, soak=80) or (3,)  # of those that copy a topic; it finds the mutations

CLUSTER_SEEDS_FILE = Path(__file__).with_name("cluster_seeds.txt")
# of worlds with three brokers, which take longer still: in the gate those that find the mutations of docs/MUTATIONS.md,
# and 1 and 3, which are reproduced
CLUSTER_SEEDS = seeds(gate=0, soak=1_000) or (5, 9, 16, 17)
STORAGE_SEEDS_FILE = Path(__file__).with_name("storage_seeds.txt")
STORAGE_SEEDS = seeds(gate=0, soak=600) or (3, 5, 6)  # each of the six scenarios begins once in six seeds

# of worlds of the machines alone, which take the fiftieth part: in the gate those that find the mutations
MACHINE_SEEDS = seeds(gate=0, soak=100_000) or (1, 2, 3, 5, 7, 8, 10, 11, 16, 17)
# of short ones, with more faults: the same, and those in between
SHORT_SEEDS = seeds(gate=0, soak=100_000) or (*range(1, 61), *range(121, 131), *range(176, 186))
UNCLEAN_SEEDS = seeds(gate=12, soak=10_000)  # of those with unclean elections
MOVING_SEEDS = seeds(gate=14, soak=10_000)  # of those with reassignments
MINIMUM_SEEDS = seeds(gate=6, soak=10_000)  # of those with changes of min.insync.replicas
DELETION_SEEDS = seeds(gate=4, soak=10_000)  # of those with deletions of records
DISK_SEEDS = seeds(gate=20, soak=10_000)  # of those with slow disks and logs that fail
MACHINE_SLICE = 50  # that one test plays
SLICES_OF_MACHINES = {  # seeds, and the file of those that have failed
    "machine_seeds": (MACHINE_SEEDS, Path(__file__).with_name("machine_seeds.txt")),
    "short_seeds": (SHORT_SEEDS, Path(__file__).with_name("short_seeds.txt")),
    "unclean_seeds": (UNCLEAN_SEEDS, Path(__file__).with_name("unclean_seeds.txt")),
    "moving_seeds": (MOVING_SEEDS, Path(__file__).with_name("moving_seeds.txt")),
    "minimum_seeds": (MINIMUM_SEEDS, Path(__file__).with_name("minimum_seeds.txt")),
    "deletion_seeds": (DELETION_SEEDS, Path(__file__).with_name("deletion_seeds.txt")),
    "disk_seeds": (DISK_SEEDS, Path(__file__).with_name("disk_seeds.txt")),
}

TRANSACTION_SEEDS_FILE = Path(__file__).with_name("transaction_seeds.txt")
TRANSACTION_SEEDS = seeds(gate=2, soak=300)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rota-seed", type=int, default=None, help="the one seed to play, with all that happens in it")


@pytest.fixture
def quiet() -> Iterator[None]:
    """Brokers and clients log a lot in such a run; a seed of its own (`--rota-seed`) shows what happened."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    structlog.reset_defaults()


def failed_seeds(path: Path = SEEDS_FILE) -> list[int]:
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [int(line) for line in lines if line]


# the seeds of each fixture, and the file of those that have failed
SEEDS_OF_WORLDS = {
    "seed": (SEEDS, SEEDS_FILE),
    "client_seed": (CLIENT_SEEDS, CLIENT_SEEDS_FILE),
    "epoch_seed": (EPOCH_SEEDS, EPOCH_SEEDS_FILE),
    "copy_seed": (COPY_SEEDS, COPY_SEEDS_FILE),
    "cluster_seed": (CLUSTER_SEEDS, CLUSTER_SEEDS_FILE),
    "transaction_seed": (TRANSACTION_SEEDS, TRANSACTION_SEEDS_FILE),
    "storage_seed": (STORAGE_SEEDS, STORAGE_SEEDS_FILE),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    given = metafunc.config.getoption("--rota-seed", default=None)
    if "swim_seed" in metafunc.fixturenames:
        metafunc.parametrize("swim_seed", SWIM_SEEDS, ids=lambda seed: f"seed={seed}")
    for fixture, (of_world, file) in SEEDS_OF_WORLDS.items():
        if fixture in metafunc.fixturenames:
            chosen = [*of_world, *failed_seeds(file)] if given is None else [given]
            metafunc.parametrize(fixture, list(dict.fromkeys(chosen)), ids=lambda seed: f"seed={seed}")
    for fixture, (of_machines, file) in SLICES_OF_MACHINES.items():
        if fixture in metafunc.fixturenames:
            slices = [of_machines[at : at + MACHINE_SLICE] for at in range(0, len(of_machines), MACHINE_SLICE)]
            slices += [range(seed, seed + 1) for seed in failed_seeds(file) if seed not in of_machines]
            chosen_slices = slices if given is None else [range(given, given + 1)]
            metafunc.parametrize(fixture, chosen_slices, ids=lambda part: f"seeds={part[0]}-{part[-1]}")
