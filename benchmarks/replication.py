"""Three Rota brokers with ZooKeeper beside three Kafka brokers: `python -m benchmarks.replication [SECONDS]`.

Records and commits have three replicas; acks=all, min.insync.replicas=2. Both clusters run, and each row is measured on
the one and then on the other, twice; the second time counts, when the JVM is warm. One generator process for each
broker pumps ready-made frames to the partition or the groups that the broker leads. About a minute.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tools.cluster import Cluster
from tools.peer.cluster import KafkaCluster

from benchmarks.cores import commits, cpu_s_of, drive
from benchmarks.rows import produce_for, unique

SECONDS, WAIT_S = 3.0, 30.0
PROPERTIES = {"min.insync.replicas": "2"}
PARTITIONS, REPLICAS, IN_FLIGHT = 3, 3, 5


@dataclass(frozen=True, slots=True)
class Brokers:
    """A cluster to measure."""

    name: str
    bootstrap: str
    pids: list[int]

    def cpu_s(self) -> float:
        return sum(map(cpu_s_of, self.pids))

    def memory_mb(self) -> float:
        """Resident memory of a broker, the mean."""
        return sum(map(_memory_mb, self.pids)) / len(self.pids)


def produce(brokers: Brokers, record_bytes: int, batch_bytes: int, seconds: float) -> float:
    """MB of records a second, a partition for each broker."""
    topic = unique("produced")
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap, "log_level": 3})
    new = NewTopic(topic, PARTITIONS, REPLICAS, config={"min.insync.replicas": "2"})
    admin.create_topics([new])[topic].result(WAIT_S)
    work = [
        (address, topic, record_bytes, batch_bytes, IN_FLIGHT, seconds, partition)
        for partition, address in _leaders(admin, topic).items()
    ]
    with multiprocessing.get_context("fork").Pool(len(work)) as pool:
        return sum(pool.starmap(produce_for, work))


def _leaders(admin: AdminClient, topic: str) -> dict[int, str]:
    """The address of each partition's leader, when all replicas are in the ISRs."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        metadata = admin.list_topics(topic, timeout=WAIT_S)
        partitions = metadata.topics[topic].partitions
        if len(partitions) == PARTITIONS and all(len(each.isrs) == REPLICAS for each in partitions.values()):
            at = {index: metadata.brokers[each.leader] for index, each in partitions.items()}
            return {index: f"{broker.host}:{broker.port}" for index, broker in at.items()}
        time.sleep(0.1)
    raise TimeoutError(f"{topic} has no leaders with {REPLICAS} replicas in sync")


def commit(brokers: Brokers, seconds: float) -> float:
    """Commits of one partition a second."""
    return sum(done.per_s for done in drive(commits(brokers.bootstrap.partition(",")[0]), seconds))


ROWS: dict[str, Callable[[Brokers, float], float]] = {
    "produce 100 B records, 64 KB batches, MB/s": lambda brokers, seconds: produce(brokers, 100, 64_000, seconds),
    "produce 1 KB records, 128 KB batches, MB/s": lambda brokers, seconds: produce(brokers, 1000, 128_000, seconds),
    "OffsetCommit of 1 partition, 6 x 16, 1/s": commit,
}


def _memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def measure(ours: Brokers, theirs: Brokers, seconds: float) -> None:
    """Print a line for each row."""
    print(f"{'':44} {ours.name:>10} {theirs.name:>10} {'ratio':>6}   processor time, s")
    _show("memory of a broker, idle, MB", ours.memory_mb(), theirs.memory_mb())
    for name, row in ROWS.items():
        for brokers in (ours, theirs):
            row(brokers, seconds / 2)
        (mine, my_s), (other, other_s) = (_timed(row, brokers, seconds) for brokers in (ours, theirs))
        _show(name, mine, other, f"{my_s:.1f}, {other_s:.1f}")
    _show("memory of a broker, after this load, MB", ours.memory_mb(), theirs.memory_mb())


def _timed(row: Callable[[Brokers, float], float], brokers: Brokers, seconds: float) -> tuple[float, float]:
    """The figure, and the processor time that the brokers spent."""
    before_s = brokers.cpu_s()
    return row(brokers, seconds), brokers.cpu_s() - before_s


def _show(name: str, mine: float, other: float, more: str = "") -> None:
    print(f"{name:44} {mine:10,.0f} {other:10,.0f} {mine / other:6.2f}   {more}", flush=True)


def main(seconds: float = SECONDS) -> None:
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        home = Path(folder)
        with Cluster(home, properties=PROPERTIES) as rota, KafkaCluster(home) as kafka:
            measure(Brokers("Rota", rota.bootstrap, rota.pids), Brokers("Kafka", kafka.bootstrap, kafka.pids), seconds)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
