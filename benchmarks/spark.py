"""Batches read and written in Spark, side by side: this project's connector and Spark's own, in one session.

`python -m benchmarks.spark [HOST:PORT] [--records N] [--rounds N]`: 3 million records of 228 bytes (key 12, value 216,
batches of 16 KB, four partitions) on a Rota broker that writes to disk, or on the broker that is named. Spark runs
locally on two cores; each read ends in Spark's `noop` sink, which looks at every row and keeps none. Both are warmed,
then read in turn, round after round; the best round counts, since everything else on the machine can only make it
slower. "cpu" is that of Spark, its Python workers and the broker together, for one record. Before that, both are
arguments for a checksum over all columns of all rows, which has to be the same.

Then a third as many rows of a cached frame (key 12, value 100 bytes, or the value alone) are written by both in turn,
each time to a new topic of four partitions, and counted by a read.

Goals: read twice as fast as Spark's own connector, write as fast; a Python worker never above 300 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from benchmarks.brokers import has_kafka, rota

KINDS: Final = ("rota", "kafka")
PARTITIONS, KEY_BYTES, VALUE_BYTES, WRITTEN_BYTES, BATCH_BYTES = 4, 12, 216, 100, 16_384
RATIO_GOAL, WORKER_GOAL_MB = 2.0, 300
TICKS: Final = os.sysconf("SC_CLK_TCK")


def main() -> None:
    arguments = options()
    console = Console()
    if not has_kafka():
        console.print("[yellow]Java or Maven is missing: no Spark, no figures of it[/]")
        return
    with ExitStack() as stack:
        address, broker = arguments.address, None
        if not address:
            running = stack.enter_context(rota())
            address, broker = running.address, running.pid
        topic = arguments.topic or filled(address, arguments.records)
        spark = stack.enter_context(session())
        same = {kind: checksum(spark, kind, address, topic) for kind in KINDS}
        assert same["rota"] == same["kafka"], f"the rows differ: {same}"
        for kind in KINDS:  # warm
            measured(spark, kind, address, topic, broker)
        rounds = [
            {kind: measured(spark, kind, address, topic, broker) for kind in KINDS} for _ in range(arguments.rounds)
        ]
        records = same["rota"][0]
        console.print(table(f"{records:,} records read; equal rows", records, rounds, RATIO_GOAL))
        for name, columns in (("with keys", ["key", "value"]), ("without keys", ["value"])):
            written = Writes(spark, columns, records // 3, address, broker)
            written.run("rota"), written.run("kafka")  # warm
            rounds = [{kind: written.run(kind) for kind in KINDS} for _ in range(arguments.rounds)]
            console.print(table(f"{written.records:,} records written {name}", written.records, rounds, 1.0))


class Writes:
    """Writes the same rows again and again, each time to a new topic, which it deletes."""

    def __init__(self, spark: Any, columns: list[str], records: int, address: str, broker: int | None) -> None:
        row = ["cast(lpad(id, 12, '0') as binary) AS key", f"cast(repeat('v', {WRITTEN_BYTES}) as binary) AS value"]
        self._frame = spark.range(0, records, 1, 2).selectExpr(*row).select(*columns).cache()
        self.records = self._frame.count()
        self._spark, self._address, self._broker = spark, address, broker

    def run(self, kind: str) -> tuple[float, float]:
        """Seconds of one write, and of all processors meanwhile."""
        with new_topic(self._address) as topic:
            spent, began = cpu_s(self._broker), time.perf_counter()
            target = self._frame.write.format(kind).mode("append").option("topic", topic)
            target.option("kafka.bootstrap.servers", self._address).save()
            took = time.perf_counter() - began, cpu_s(self._broker) - spent
            found = loaded(self._spark, "rota", self._address, topic).count()
            assert found == self.records, f"{found} of {self.records} records are in the topic"
        return took


@contextlib.contextmanager
def new_topic(address: str) -> Iterator[str]:
    """A topic of PARTITIONS partitions, deleted at the end."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    name = f"spark-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address})  # its answers end with it
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
    yield name
    admin.delete_topics([name])[name].result(30)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("address", nargs="?", default="", help="HOST:PORT of a broker; default: a Rota of its own")
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--topic", help="read this one and fill none")
    return parser.parse_args()


def filled(address: str, records: int) -> str:
    """A topic of so many records, spread evenly."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    topic = f"spark-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address})  # its answers end with it
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    settings = {"batch.size": BATCH_BYTES, "linger.ms": 20, "queue.buffering.max.messages": 200_000}
    producer = Producer({"bootstrap.servers": address, **settings})
    value = bytes(range(256))[:VALUE_BYTES]
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, b"%012d" % number, partition=number * PARTITIONS // records)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0
    return topic


# ---- Spark


@contextlib.contextmanager
def session() -> Iterator[Any]:
    """A Spark on two cores with both connectors."""
    from pyspark.sql import SparkSession
    from tools import spark_jars

    from rota.spark_connector.source import register

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(prefix="rota-spark-") as folder:
        builder = SparkSession.builder.master("local[2]").appName("rota-bench")
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "2g",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.log.level": "ERROR",
            "spark.jars": ",".join(map(str, spark_jars.fetch())),
        }
        for name, setting in settings.items():
            builder = builder.config(name, setting)
        spark = builder.getOrCreate()
        register(spark)
        try:
            yield spark
        finally:
            spark.stop()


def loaded(spark: Any, kind: str, address: str, topic: str) -> Any:
    return spark.read.format(kind).option("kafka.bootstrap.servers", address).option("subscribe", topic).load()


def checksum(spark: Any, kind: str, address: str, topic: str) -> tuple[int, int]:
    """How many rows, and a number that depends on every column of each."""
    frame = loaded(spark, kind, address, topic)
    row = frame.selectExpr("count(*)", f"bit_xor(xxhash64({', '.join(frame.columns)}))").first()
    return row[0], row[1]


def measured(spark: Any, kind: str, address: str, topic: str, broker: int | None) -> tuple[float, float]:
    """Seconds of one read, and of all processors meanwhile."""
    spent, began = cpu_s(broker), time.perf_counter()
    loaded(spark, kind, address, topic).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began, cpu_s(broker) - spent


# ---- processes


def descendants(root: int) -> list[int]:
    """Every process below this one: Spark's JVM, its Python daemon and workers."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def cpu_s(broker: int | None) -> float:
    """What they and their dead children have used."""
    total = 0
    for pid in {*descendants(os.getpid()), *([broker] if broker is not None else [])}:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(field) for field in fields[11:15])
    return total / TICKS


def worker_mb() -> float:
    """The most that one of Spark's Python processes has had in memory."""
    most = 0
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            program, *arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if "python" in program and any("pyspark" in one for one in arguments):
                status = Path(f"/proc/{pid}/status").read_text().splitlines()
                most = max([most, *(int(line.split()[1]) for line in status if line.startswith("VmHWM"))])
    return most / 1024


def table(title: str, records: int, rounds: list[dict[str, tuple[float, float]]], goal: float) -> Table:
    found = Table("connector", "records/s", "ratio", "cpu us/record", title=title)
    wall = {kind: min(entry[kind][0] for entry in rounds) for kind in KINDS}
    for kind, name in zip(KINDS, ('format("rota")', 'format("kafka")'), strict=True):
        cpu = min(entry[kind][1] for entry in rounds)
        ratio = wall["kafka"] / wall[kind]
        shade = "" if kind == "kafka" else "[green]" if ratio >= goal else "[red]"
        found.add_row(name, f"{records / wall[kind]:,.0f}", f"{shade}{ratio:.2f}", f"{cpu / records * 1e6:.2f}")
    found.caption = f"goal: {goal}; largest Python worker {worker_mb():.0f} MB, goal below {WORKER_GOAL_MB} MB"
    return found


if __name__ == "__main__":
    main()
